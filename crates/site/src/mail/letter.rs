//! A message to a person. It is rendered in two forms: plain text, and HTML for programs that show
//! it.

use askama::Template;

/// The contents of a message. [`super::texts`] builds it. All its parts may come from a stranger
/// and are escaped.
#[derive(Debug, Clone)]
pub struct Letter {
    subject: String,
    greeting: String,
    parts: Vec<Part>,
}

/// A paragraph.
#[derive(Debug, Clone)]
enum Part {
    Text(String),
    Code(String),
    Link { label: &'static str, url: String },
}

#[derive(Template)]
#[template(path = "mail.html")]
struct Html<'a> {
    letter: &'a Letter,
}

impl Letter {
    /// Begins a message to a person by name.
    pub fn to(name: &str, subject: impl Into<String>) -> Self {
        Self {
            subject: one_line(&subject.into()),
            greeting: format!("Hello {},", one_line(name)),
            parts: Vec::new(),
        }
    }

    /// Begins a message to an address whose owner is unknown.
    pub fn to_somebody(subject: impl Into<String>) -> Self {
        Self {
            subject: one_line(&subject.into()),
            greeting: "Hello,".to_owned(),
            parts: Vec::new(),
        }
    }

    /// Adds a paragraph.
    #[must_use]
    pub fn say(mut self, text: impl Into<String>) -> Self {
        self.parts.push(Part::Text(text.into()));
        self
    }

    /// Adds a code to type.
    #[must_use]
    pub fn code(mut self, code: &str) -> Self {
        self.parts.push(Part::Code(code.to_owned()));
        self
    }

    /// Adds a link to an absolute address of this service.
    #[must_use]
    pub fn link(mut self, label: &'static str, url: impl Into<String>) -> Self {
        self.parts.push(Part::Link {
            label,
            url: url.into(),
        });
        self
    }

    /// The subject, in one line.
    pub fn subject(&self) -> &str {
        &self.subject
    }

    /// The plain text.
    pub fn text(&self) -> String {
        let mut text = self.greeting.clone();
        for part in &self.parts {
            text.push_str("\n\n");
            match part {
                Part::Text(words) => text.push_str(words),
                Part::Code(code) => {
                    text.push_str("    ");
                    text.push_str(code);
                }
                Part::Link { label, url } => {
                    text.push_str(label);
                    text.push_str(":\n");
                    text.push_str(url);
                }
            }
        }
        text.push('\n');
        text
    }

    /// The message as HTML. Empty if rendering fails: the plain text is enough to act on.
    pub fn html(&self) -> String {
        Html { letter: self }.render().unwrap_or_else(|error| {
            tracing::error!(
                error = &error as &dyn std::error::Error,
                "a mail has no HTML"
            );
            String::new()
        })
    }
}

/// Removes line ends and limits the length, because names and subjects become headers.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .take(150)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_say_the_same_and_a_name_is_only_a_name() {
        let letter = Letter::to("<b>Ann</b>\r\nBcc: eve@evil.example", "Code 1\r\nBcc: x")
            .say("Enter it.")
            .code("12345678")
            .link("Open this", "https://portolan.example/verify?code=1&x=2");
        assert!(!letter.subject().contains(['\r', '\n']));
        let text = letter.text();
        assert!(text.starts_with("Hello <b>Ann</b>  Bcc: eve@evil.example,\n\nEnter it.\n\n"));
        assert!(text.contains("https://portolan.example/verify?code=1&x=2"));
        let html = letter.html();
        assert!(!html.contains("<b>Ann"), "{html}");
        assert!(html.contains("12345678") && html.contains("Enter it."));
        assert!(
            !html.contains("<script") && !html.contains("<img"),
            "nothing is fetched"
        );
    }
}
