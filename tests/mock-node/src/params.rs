//! What a request asks for: a JSON body, a form, or a query string, read as java-tron's servlets read them (`PostParams`,
//! `JsonFormat.merge`), with the errors that they give.

use axum::extract::Query;
use axum::http::Uri;
use serde_json::{Map, Value};

/// `{"Error": …}` with status 200: the text (`Util.printErrorMsg`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServletError(pub String);

impl ServletError {
    /// `class <java class> : <message>`.
    #[must_use]
    pub fn of(class: &str, message: &str) -> Self {
        Self(format!("class {class} : {message}"))
    }
}

/// The parameters of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Params {
    /// Out of a query string, or a form: all text.
    Query(Map<String, Value>),
    /// Out of a JSON body.
    Json(Map<String, Value>),
    /// A POST without a body.
    Nothing,
}

impl Params {
    /// Of a GET.
    pub fn of_query(query: &str) -> Result<Self, ServletError> {
        let uri: Uri = format!("/?{query}").parse().map_err(|_| bad_query())?;
        let pairs = Query::<Vec<(String, String)>>::try_from_uri(&uri).map_err(|_| bad_query())?;
        let fields = pairs
            .0
            .into_iter()
            .map(|(name, value)| (name, Value::String(value)));
        Ok(Self::Query(fields.collect()))
    }

    /// Of a POST: JSON whatever its content type says, unless that is exactly a form's.
    pub fn of_body(body: &[u8], is_form: bool) -> Result<Self, ServletError> {
        let text = std::str::from_utf8(body)
            .map_err(|_| ServletError::of("com.alibaba.fastjson.JSONException", "invalid UTF-8"))?;
        if text.trim().is_empty() {
            return Ok(Self::Nothing);
        }
        if is_form {
            return match Self::of_query(text)? {
                Self::Query(fields) => Ok(Self::Json(fields)),
                other => Ok(other),
            };
        }
        match serde_json::from_str(text) {
            Ok(Value::Object(fields)) => Ok(Self::Json(fields)),
            Ok(_) => Err(ServletError::of(
                "java.lang.ClassCastException",
                "the body cannot be cast to com.alibaba.fastjson.JSONObject",
            )),
            Err(error) => Err(ServletError::of(
                "com.alibaba.fastjson.JSONException",
                &format!("syntax error, {error}"),
            )),
        }
    }

    fn get(&self, name: &str) -> Option<&Value> {
        match self {
            Self::Query(fields) | Self::Json(fields) => fields.get(name),
            Self::Nothing => None,
        }
    }

    /// The whole JSON body; null without one.
    #[must_use]
    pub fn body(&self) -> Value {
        match self {
            Self::Query(fields) | Self::Json(fields) => Value::Object(fields.clone()),
            Self::Nothing => Value::Null,
        }
    }

    /// `visible`; false if not given.
    #[must_use]
    pub fn visible(&self) -> bool {
        self.flag("visible")
    }

    /// A flag; false if not given.
    #[must_use]
    pub fn flag(&self, name: &str) -> bool {
        match self.get(name) {
            Some(Value::Bool(flag)) => *flag,
            Some(Value::String(text)) => text.eq_ignore_ascii_case("true"),
            _ => false,
        }
    }

    /// A text; numbers count as theirs.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<String> {
        match self.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    }

    /// A POST that is read into a message needs a body, if only `{}`.
    pub fn need_body(&self) -> Result<(), ServletError> {
        match self {
            Self::Nothing => Err(parse_error("1:1: Expected \"{\".")),
            Self::Query(_) | Self::Json(_) => Ok(()),
        }
    }

    /// An integer: 0 if a JSON body lacks it, an error if a query does.
    pub fn integer(&self, name: &str) -> Result<i64, ServletError> {
        self.need_body()?;
        let number_error = |text: &str| {
            ServletError::of(
                "java.lang.NumberFormatException",
                &format!("For input string: \"{text}\""),
            )
        };
        match (self, self.get(name)) {
            (Self::Query(_), None) => {
                Err(ServletError::of("java.lang.NumberFormatException", "null"))
            }
            (_, None | Some(Value::Null)) => Ok(0),
            (Self::Query(_), Some(Value::String(text))) => {
                text.parse().map_err(|_| number_error(text))
            }
            (_, Some(Value::String(text))) => {
                text.parse().map_err(|_| parse_error("Expected integer."))
            }
            (_, Some(Value::Number(number))) => number
                .as_i64()
                .ok_or_else(|| parse_error("Expected integer.")),
            (_, Some(_)) => Err(parse_error("Expected integer.")),
        }
    }

    /// Bytes in hex: empty if not given.
    pub fn bytes(&self, name: &str) -> Result<Vec<u8>, ServletError> {
        self.need_body()?;
        match self.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::String(text)) => crate::pack::hex_bytes(text).map_err(|_| {
                ServletError::of(
                    "org.bouncycastle.util.encoders.DecoderException",
                    "exception decoding Hex string: invalid characters encountered in Hex string",
                )
            }),
            Some(_) => Err(parse_error("Expected string.")),
        }
    }
}

fn bad_query() -> ServletError {
    ServletError::of(
        "java.lang.IllegalArgumentException",
        "the query string cannot be read",
    )
}

fn parse_error(message: &str) -> ServletError {
    ServletError::of(
        "org.tron.core.services.http.JsonFormat$ParseException",
        message,
    )
}
