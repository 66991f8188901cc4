//! The tree of classes of `h-fsc`, and how it is written.
//!
//! `voice=2x4/6000b@ef + office=5(web=3@af21/af22 + mail=1) + guests=1`: siblings separated by
//! `+`, children in parentheses, curves as in `fsc`, code points behind `@`.

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::curve::Curve;
use super::marks::{self, ByCode};
use crate::interface::{Form, Packet, Param, Params, Takes};

/// Classes by number; the root is 0. Those at the bottom have groups of flows, by another number.
pub(crate) struct Tree {
    nodes: Vec<Node>,
    /// By number of a group: its class.
    groups: Vec<usize>,
    /// By code point: 1 + the number of the group that has it, or 0.
    by_code: ByCode,
    /// Groups of flows whose code point no class has.
    others: Vec<u8>,
}

struct Node {
    name: String,
    curve: Curve,
    parent: Option<usize>,
    children: Vec<usize>,
    group: Option<u8>,
}

const MOST_CLASSES: usize = 100;
const MOST_LEVELS: usize = 8;

/// `classes`: the tree.
pub(crate) const CLASSES: Param<Box<str>> = Param {
    name: "classes",
    kind: Takes::form(&Form {
        name: "classes",
        pattern: "NAME=WEIGHT or NAME=WEIGHTxBPR/PBS, with @DSCP/DSCP or (children), joined by +: \
                  voice=2x4/6000b@ef+office=5(web=3@af21/af22+mail=1)+guests=1",
        examples: &[
            "all=1",
            "a=3+b=1",
            "voice=2x4/6000b@ef+rest=1",
            "a=1(b=1(c=5))",
            "a=2(b=3(c=1@ef+d=2)+e=1)+f=1",
            "office=5(web=3@be+mail=1)+guests=1x2/3000b(one=1+two=2x8/1500b@cs1)",
        ],
        check: |text| Tree::parse(text).map(|_| ()),
    }),
    default: "marked=1@ef/cs5/cs6/cs7+rest=1",
    effect: "the tree of classes: how they share the link, and which DSCP they have; the others are \
             spread over the classes without @",
    source: "ours",
    live: false,
};

impl Tree {
    pub(crate) fn from_params(params: &Params) -> Self {
        // Checked when the parameter was set.
        Self::parse(&params.get(CLASSES)).unwrap_or_else(|reason| panic!("classes: {reason}"))
    }

    /// Classes, the root among them.
    pub(crate) const fn classes(&self) -> usize {
        self.nodes.len()
    }

    /// Classes at the bottom.
    pub(crate) const fn groups(&self) -> usize {
        self.groups.len()
    }

    pub(crate) fn parent(&self, class: usize) -> Option<usize> {
        self.nodes[class].parent
    }

    /// `None` at the bottom.
    pub(crate) fn children(&self, class: usize) -> Option<&[usize]> {
        let children = &self.nodes[class].children;
        (!children.is_empty()).then_some(children)
    }

    pub(crate) fn curve(&self, class: usize) -> &Curve {
        &self.nodes[class].curve
    }

    pub(crate) fn class_of(&self, group: u8) -> usize {
        self.groups[usize::from(group)]
    }

    pub(crate) fn group_at(&self, class: usize) -> Option<u8> {
        self.nodes[class].group
    }

    /// The group that a flow comes to with this packet.
    pub(crate) fn group_of(&self, packet: &Packet) -> u8 {
        match self.by_code.of(packet) {
            // The upper half of the fingerprint: tables use the lower.
            0 => self.others[(packet.flow.get() >> 32) as usize % self.others.len()],
            group => group - 1,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        let root = Node {
            name: String::new(),
            curve: Curve::new(1, 1000, 0),
            parent: None,
            children: Vec::new(),
            group: None,
        };
        let (nodes, groups, others) = ([root].into(), Vec::new(), Vec::new());
        let mut tree = Self { nodes, groups, by_code: ByCode::NONE, others };
        let mut codes = Vec::new();
        tree.children_from(0, text, 1, &mut codes)?;
        marks::no_code_twice(codes.into_iter())?;
        if tree.others.is_empty() {
            return Err("every class has a DSCP, so none is for packets with another".to_owned());
        }
        Ok(tree)
    }

    /// Reads the children of a class.
    fn children_from(
        &mut self,
        parent: usize,
        text: &str,
        level: usize,
        codes: &mut Vec<u8>,
    ) -> Result<(), String> {
        if level > MOST_LEVELS {
            return Err(format!("classes are nested deeper than {MOST_LEVELS} levels"));
        }
        for text in split(text)? {
            let text = text.trim();
            let (name, text) = text
                .split_once('=')
                .filter(|(name, _)| is_name(name.trim()))
                .ok_or_else(|| format!("'{text}' does not begin with NAME="))?;
            let name = name.trim();
            if self.nodes.iter().any(|node| node.name == name) {
                return Err(format!("class '{name}' is there twice"));
            }
            if self.nodes.len() > MOST_CLASSES {
                return Err(format!("there are more than {MOST_CLASSES} classes"));
            }
            let (text, inside) = match text.split_once('(') {
                None => (text, None),
                Some((text, rest)) => {
                    let inside = rest.trim_end().strip_suffix(')').ok_or_else(|| {
                        format!("class '{name}' has something behind its children, '{rest}'")
                    })?;
                    (text, Some(inside))
                }
            };
            let in_class = |reason| format!("class '{name}': {reason}");
            let marked = marks::marked(text).map_err(in_class)?;
            let curve = Curve::parse(marked.what).map_err(in_class)?;
            let class = self.nodes.len();
            let name = name.to_owned();
            let (parent, children, group) = (Some(parent), Vec::new(), None);
            self.nodes.push(Node { name, curve, parent, children, group });
            if let Some(parent) = parent {
                self.nodes[parent].children.push(class);
            }
            match inside {
                Some(inside) if marked.codes.is_empty() => {
                    self.children_from(class, inside, level + 1, codes)?;
                }
                Some(_) => {
                    let name = &self.nodes[class].name;
                    return Err(format!("class '{name}' has children, which have the DSCP"));
                }
                None => self.add_group(class, &marked.codes, codes),
            }
        }
        Ok(())
    }

    fn add_group(&mut self, class: usize, own: &[u8], codes: &mut Vec<u8>) {
        let group = self.groups.len() as u8;
        self.groups.push(class);
        self.nodes[class].group = Some(group);
        self.by_code.set(own, group + 1);
        codes.extend_from_slice(own);
        if own.is_empty() {
            self.others.push(group);
        }
    }
}

/// Names are words of letters, digits, `-` and `_`.
fn is_name(text: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    !text.is_empty() && text.chars().all(is_of_word)
}

/// Splits at each `+` outside of parentheses.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0usize);
    for (place, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 0 => return Err("a ')' closes nothing".to_owned()),
            ')' => depth -= 1,
            '+' if depth == 0 => {
                parts.push(&text[begin..place]);
                begin = place + 1;
            }
            _ => {}
        }
    }
    if depth > 0 {
        return Err("a '(' is not closed".to_owned());
    }
    parts.push(&text[begin..]);
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interface::FlowId;

    #[test]
    fn a_tree_reads_as_it_is_written() {
        let text = "voice=2x4/6000b@ef + office=5(web=3@af21/af22 + mail=1) + guests=1";
        let tree = Tree::parse(text).unwrap();
        let names: Vec<_> = tree.nodes.iter().map(|node| node.name.as_str()).collect();
        assert_eq!(names, ["", "voice", "office", "web", "mail", "guests"]);
        let parents: Vec<_> = (0..6).map(|class| tree.parent(class)).collect();
        assert_eq!(parents, [None, Some(0), Some(0), Some(2), Some(2), Some(0)]);
        assert_eq!(tree.children(2), Some(&[3, 4][..]));
        assert_eq!(tree.curve(1), &Curve::new(2, 4000, 6000));
        let group = |dscp, flow| {
            let mut packet = Packet::new(FlowId::new(flow), 100);
            packet.dscp = dscp;
            tree.nodes[tree.class_of(tree.group_of(&packet))].name.as_str()
        };
        assert_eq!([group(46, 7), group(18, 7), group(20, 1 << 32)], ["voice", "web", "web"]);
        assert_eq!([group(0, 7), group(0, 1 << 32), group(9, 2 << 32)], ["mail", "guests", "mail"]);
    }

    #[test]
    fn what_is_no_tree_is_refused_with_the_reason() {
        for (text, reason) in [
            ("", "does not begin with NAME="),
            ("1+2", "does not begin with NAME="),
            ("a=0", "class 'a': weight '0'"),
            ("a=-1", "class 'a': weight '-1'"),
            ("a=1+b=1x0.5/6000b", "class 'b': '1x0.5/6000b' is convex"),
            ("a=1x4", "no size of the burst"),
            ("a=1x4/6", "burst size '6'"),
            ("a=1x101/6b", "burst ratio '101'"),
            ("a=1@ef", "none is for packets with another"),
            ("a=1@ef+b=1@46+c=1", "code 46 is there twice"),
            ("a=1+a=2", "class 'a' is there twice"),
            ("a=1@x", "'x' is not a DSCP"),
            ("a=1(b=1", "is not closed"),
            ("a=1)b=1", "closes nothing"),
            ("a=1(b=1)@ef", "something behind its children"),
            ("a=1@ef(b=1)", "has children"),
            ("a=1(b=1(c=1(d=1(e=1(f=1(g=1(h=1(i=1))))))))", "deeper than 8"),
        ] {
            let error = Tree::parse(text).err().unwrap_or_else(|| panic!("{text} is accepted"));
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
