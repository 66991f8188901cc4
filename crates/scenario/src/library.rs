//! Ready scenarios: the files of `scenarios/`, inside the program.

/// A ready scenario.
#[derive(Clone, Copy, Debug)]
pub struct Ready {
    /// Its name.
    pub name: &'static str,
    /// The file.
    pub text: &'static str,
}

macro_rules! ready {
    ($($name:literal),* $(,)?) => {
        /// Every ready scenario.
        pub static ALL: &[Ready] = &[$(Ready {
            name: $name,
            text: include_str!(concat!("../../../scenarios/", $name, ".toml")),
        }),*];
    };
}

ready![
    "efd-paper-8mbit",
    "efd-paper-15mbit",
    "efd-paper-cbr",
    "flow-scheduler-s1",
    "flow-scheduler-s2",
    "flow-scheduler-s1-scaled",
    "home-link",
    "one-link",
    "chain",
    "web-star",
    "mg1",
];

/// The ready scenario of this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Ready> {
    ALL.iter().find(|ready| ready.name == name)
}
