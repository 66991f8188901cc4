//! From the text of a script to its events.

use tcp::Nanos;

use crate::check::Check;
use crate::packet::Packet;
use crate::script::{Call, Event, Kind, Script, Time, integer};

/// Reads a script. The error says where it is not one; what is one, but not within the harness's
/// means, becomes [`Kind::Unknown`].
pub fn script(text: &str) -> Result<Script, String> {
    let mut reader = Reader { text, at: 0 };
    let mut script = Script::default();
    while reader.skip_blank() {
        let line = reader.line();
        let rest = reader.rest();
        if let Some(option) = rest.strip_prefix("--") {
            let word = option.split_whitespace().next().unwrap_or_default();
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            script.options.push((name.to_owned(), value.to_owned()));
            reader.at += 2 + word.len();
        } else if rest.starts_with('`') {
            script.commands.push((line, reader.enclosed("`", "`")?));
        } else {
            let (time, lasts) = reader.time()?;
            reader.skip_blank();
            let kind = reader.kind()?;
            script.events.push(Event { line, time, lasts, kind });
        }
    }
    Ok(script)
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    /// The number of the line, from 1.
    fn line(&self) -> usize {
        1 + self.text[..self.at].matches('\n').count()
    }

    fn error(&self, what: &str) -> String {
        format!("line {}: {what}", self.line())
    }

    /// Goes on to what is neither space nor comment. `false` at the end.
    fn skip_blank(&mut self) -> bool {
        loop {
            self.at = self.text.len() - self.rest().trim_start().len();
            let trimmed = self.rest();
            let end = if trimmed.starts_with("//") || trimmed.starts_with('#') {
                trimmed.find('\n')
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|at| at + 2)
            } else {
                return !trimmed.is_empty();
            };
            self.at += end.unwrap_or(trimmed.len());
        }
    }

    /// What stands between two marks.
    fn enclosed(&mut self, open: &str, close: &str) -> Result<String, String> {
        let inner = &self.rest()[open.len()..];
        let end = inner.find(close).ok_or_else(|| self.error("no end"))?;
        let found = inner[..end].to_owned();
        self.at += open.len() + end + close.len();
        Ok(found)
    }

    /// `+.1`, `0.2`, `*`, `+.3~+.310`, `+0...0.010`; and how long it lasts.
    fn time(&mut self) -> Result<(Time, Nanos), String> {
        if self.rest().starts_with('*') {
            self.at += 1;
            return Ok((Time::Any, Nanos::ZERO));
        }
        let (relative, start) = self.moment()?;
        let mut lasts = Nanos::ZERO;
        let gap = self.rest().len() - self.rest().trim_start_matches(' ').len();
        if self.rest()[gap..].starts_with("...") {
            self.at += gap + 3;
            self.skip_blank();
            lasts = self.moment()?.1.since(start);
        } else if self.rest()[gap..].starts_with('~') {
            self.at += gap + 1;
            self.skip_blank();
            let (_, end) = self.moment()?;
            let range = if relative { Time::BetweenAfter } else { Time::Between };
            return Ok((range(start, end), lasts));
        }
        Ok((if relative { Time::After(start) } else { Time::At(start) }, lasts))
    }

    fn moment(&mut self) -> Result<(bool, Nanos), String> {
        let relative = self.rest().starts_with('+');
        self.at += usize::from(relative);
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(rest.len());
        // The dots of `0...0.010`.
        end = rest[..end].find("...").unwrap_or(end);
        let time = nanos(&rest[..end]).ok_or_else(|| {
            let found: String = rest.chars().take(20).take_while(|c| *c != '\n').collect();
            self.error(&format!("no time: `{found}`"))
        })?;
        self.at += end;
        Ok((relative, time))
    }

    fn kind(&mut self) -> Result<Kind, String> {
        let rest = self.rest();
        if rest.starts_with('`') {
            return Ok(Kind::Command(self.enclosed("`", "`")?));
        }
        if rest.starts_with("%{") {
            let text = self.enclosed("%{", "}%")?;
            return Ok(Check::read(&text).map_or_else(Kind::Unknown, Kind::Check));
        }
        if rest.starts_with('<') || rest.starts_with('>') {
            let arrives = rest.starts_with('<');
            self.at += 1;
            let line =
                self.statement(|text| text.matches('<').count() <= text.matches('>').count());
            let direction = if arrives { Kind::Arrives } else { Kind::Leaves };
            return Ok(Packet::read(&line).map_or_else(Kind::Unknown, direction));
        }
        let text = self.statement(|text| {
            text.contains('(')
                && text.matches(['(', '{', '[']).count() <= text.matches([')', '}', ']']).count()
        });
        call(&text).map(Kind::Call).ok_or_else(|| self.error(&format!("not understood: `{text}`")))
    }

    /// Whole lines, without comments, until they are complete.
    fn statement(&mut self, complete: impl Fn(&str) -> bool) -> String {
        let mut found = String::new();
        loop {
            let rest = self.rest();
            let end = rest.find('\n').unwrap_or(rest.len());
            let line = rest[..end].split("//").next().unwrap_or_default();
            found.push_str(line.trim_end());
            self.at += end;
            if complete(&found) || self.rest().is_empty() {
                return found.trim().to_owned();
            }
            self.at += 1;
            found.push(' ');
        }
    }
}

/// Seconds with a fraction.
fn nanos(text: &str) -> Option<Nanos> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let whole: u64 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let nanos: u64 = format!("{fraction:0<9}").parse().ok()?;
    Some(Nanos(whole.checked_mul(1_000_000_000)?.checked_add(nanos)?))
}

/// `write(4, ..., 1000) = -1 EPIPE (Broken pipe)`
fn call(text: &str) -> Option<Call> {
    let (name, rest) = text.split_once('(')?;
    let name = name.trim();
    let mut depth = 0;
    let mut arguments = vec![String::new()];
    let mut end = None;
    for (at, c) in rest.char_indices() {
        match c {
            ')' if depth == 0 => {
                end = Some(at);
                break;
            }
            ',' if depth == 0 => {
                arguments.push(String::new());
                continue;
            }
            '(' | '{' | '[' => depth += 1,
            ')' | '}' | ']' => depth -= 1,
            _ => {}
        }
        arguments.last_mut()?.push(c);
    }
    let result = rest[end? + 1..].trim().strip_prefix('=')?;
    let mut words = result.split_whitespace();
    let value = words.next()?;
    let error = words.next().filter(|word| word.starts_with('E')).map(str::to_owned);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let arguments = arguments.iter().map(|text| text.trim().to_owned()).collect();
    let result = if value == "..." { None } else { Some(integer(value)?) };
    is_name.then(|| Call { name: name.to_owned(), arguments, result, error })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Nanos = Nanos::from_millis(1);

    #[test]
    fn every_kind_of_line_is_read() {
        let text = "\
// A comment.
--tolerance_usecs=20000
`sysctl -q net.ipv4.tcp_ecn=1
second line`
    0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+.1~+.105 > . 1:1(0) ack 1 // and why
+0...0.010 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+.002 ... 0.004 sendmsg(4, {msg_name(...)=...,
        msg_iov(1)=[{..., 40}], msg_flags=0}, MSG_MORE) = 40
0.5 %{ assert tcpi_snd_cwnd == 10
assert tcpi_unacked < 3 }%
* < . 1:1(0) ack 1
+1 < icmp unreachable
";
        let script = script(text).unwrap();
        assert_eq!(script.options, [("tolerance_usecs".into(), "20000".into())]);
        assert_eq!(script.commands.len(), 1);
        let lines: Vec<usize> = script.events.iter().map(|event| event.line).collect();
        assert_eq!(lines, [5, 6, 7, 8, 10, 12, 13]);
        let times: Vec<Time> = script.events.iter().map(|event| event.time).collect();
        assert_eq!(times[1], Time::BetweenAfter(100 * MS, 105 * MS));
        assert_eq!(times[2..5], [Time::After(Nanos(0)), Time::After(2 * MS), Time::At(500 * MS)]);
        assert_eq!(times[5], Time::Any);
        assert_eq!((script.events[2].lasts, script.events[3].lasts), (10 * MS, 2 * MS));
        let Kind::Call(connect) = &script.events[2].kind else { panic!("{script:?}") };
        assert_eq!((connect.result, connect.error.as_deref()), (Some(-1), Some("EINPROGRESS")));
        let Kind::Call(send) = &script.events[3].kind else { panic!("{script:?}") };
        assert_eq!((send.argument(2), send.result), ("MSG_MORE", Some(40)));
        assert!(
            matches!(&script.events[6].kind, Kind::Unknown(what) if what == "packets of `icmp`")
        );
    }

    #[test]
    fn what_is_no_script_is_told_with_its_line() {
        assert_eq!(script("0 write(3) = 1\nhello\n").unwrap_err(), "line 2: no time: `hello`");
        assert!(script("0 %{ assert 1").unwrap_err().starts_with("line 1: no end"));
        assert!(script("0 write 4\n").unwrap_err().contains("not understood"));
    }
}
