use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> Overhead {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn on_ethernet(text: &str) -> (i32, u32, Cells) {
    let Framing { overhead, mpu, cells } = parse(text).framing(ETHERNET_HEADER);
    (overhead, mpu, cells)
}

#[test]
fn keywords_are_those_of_tc_cake() {
    use Cells::{Atm, None, Ptm};
    // tc-cake(8): "Equivalent to overhead ...", less the header that tc counts as well.
    for (keyword, bytes, mpu, cells) in [
        ("raw", 14, 0, None),
        ("conservative", 48, 0, Atm),
        ("pppoa-vcmux", 10, 0, Atm),
        ("pppoa-llc", 14, 0, Atm),
        ("pppoe-vcmux", 32, 0, Atm),
        ("pppoe-llcsnap", 40, 0, Atm),
        ("bridged-vcmux", 24, 0, Atm),
        ("bridged-llcsnap", 32, 0, Atm),
        ("ipoa-vcmux", 8, 0, Atm),
        ("ipoa-llcsnap", 16, 0, Atm),
        ("pppoe-ptm", 30, 0, Ptm),
        ("bridged-ptm", 22, 0, Ptm),
        ("docsis", 18, 64, None),
        ("ethernet", 38, 84, None),
        ("ether-vlan", 4, 0, None),
    ] {
        assert_eq!(on_ethernet(keyword), (bytes - 14, mpu, cells), "{keyword}");
        if keyword != "raw" {
            let without_header = parse(keyword).framing(0);
            assert_eq!(without_header.overhead, bytes, "{keyword} on ppp0");
        }
    }
}

#[test]
fn words_go_together() {
    use Cells::{Atm, None, Ptm};
    assert_eq!(on_ethernet("0"), (0, 0, None));
    assert_eq!(on_ethernet("-14"), (-14, 0, None));
    assert_eq!(on_ethernet("44,atm,mpu=64"), (44, 64, Atm));
    assert_eq!(on_ethernet("ip+44,atm,mpu=64"), (30, 64, Atm));
    assert_eq!(on_ethernet("pppoe-ptm,ether-vlan,ether-vlan"), (24, 0, Ptm));
    assert_eq!(on_ethernet("docsis,mpu=80"), (4, 80, None));
    assert_eq!(on_ethernet("mpu=80,docsis"), (4, 80, None));
    assert_eq!(on_ethernet("conservative,noatm"), (34, 0, None));
    assert_eq!(on_ethernet("raw,docsis"), (18, 64, None));
    assert_eq!(on_ethernet("docsis,via-ethernet"), (4, 64, None));
    assert_eq!(on_ethernet("mpu=64"), (0, 64, None));
    assert_eq!(on_ethernet("atm"), (0, 0, Atm));
}

#[test]
fn it_is_shown_by_keyword_or_by_numbers() {
    for (written, shown) in [
        ("docsis", "docsis"),
        ("docsis,noatm", "docsis"),
        ("docsis,mpu=80", "ip+18,mpu=80"),
        ("pppoe-ptm,ether-vlan", "ip+34,ptm"),
        ("24", "24"),
        ("raw", "0"),
        ("-14,mpu=64", "-14,mpu=64"),
        ("ip-2,atm", "ip-2,atm"),
    ] {
        assert_eq!(parse(written).to_string(), shown, "{written}");
    }
    let json = serde_json::to_string(&parse("docsis")).unwrap();
    assert_eq!(json, "\"docsis\"");
    assert_eq!(serde_json::from_str::<Overhead>(&json).unwrap(), parse("docsis"));
}

#[test]
fn what_is_refused_is_named_and_what_is_accepted_is_told() {
    let refused = |text: &str| text.parse::<Overhead>().unwrap_err().to_string();
    let unknown = refused("docsys");
    for word in ["'docsys'", "-64 to 1024", "docsis", "pppoe-ptm", "ether-vlan", "mpu=N"] {
        assert!(unknown.contains(word), "no '{word}' in: {unknown}");
    }
    for word in ["5000", "-65", "1021,ether-vlan", "ip+1025", "99999999999"] {
        let said = refused(word);
        assert!(said.contains(word) && said.contains("from -64 to 1024"), "{said}");
    }
    assert!(refused("mpu=2000").contains("from 0 to 1024"));
    for text in ["docsis,ethernet", "44,docsis", "1,2", "44,ip+3"] {
        let said = refused(text);
        let (first, second) = text.split_once(',').unwrap();
        assert!(said.contains(first) && said.contains(second), "{said}");
    }
    for text in ["", "44,", "mpu", "mpu=", "atm=1", "44b", "ip", "ip44", "overhead 44"] {
        assert!(refused(text).contains("none of"), "{text}");
    }
}

proptest! {
    #[test]
    fn what_is_shown_can_be_read_again(
        from in prop::sample::select(vec!["", "ip+"]), bytes in 0i32..=1000,
        cells in prop::sample::select(vec!["", ",atm", ",ptm", ",noatm"]),
        mpu in 0u32..=1024, tags in 0usize..3,
    ) {
        let tags = ",ether-vlan".repeat(tags);
        let overhead = parse(&format!("{from}{bytes}{cells},mpu={mpu}{tags}"));
        let text = overhead.to_string();
        prop_assert!(text.len() < 24, "{}", text);
        prop_assert_eq!(parse(&text), overhead);
    }

    #[test]
    fn no_text_makes_it_panic(text in "[a-z0-9=,+ -]{0,40}") {
        let _ = text.parse::<Overhead>();
    }
}
