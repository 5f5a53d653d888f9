//! The fields of a protobuf message, one after the other, without copying: for blocks, whose transactions are hashed where
//! they lie. Everything else is read by `prost`.

/// A field's value, as far as the wire tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field<'a> {
    /// An integer, a boolean or an enum.
    Varint(u64),
    /// Bytes, a string or a message.
    Bytes(&'a [u8]),
    /// Four or eight bytes, or a group, which no message of ours has.
    Other,
}

/// Why bytes are no protobuf message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// A field's number and type, an integer or a length that does not end.
    #[error("byte {at} begins no field")]
    Varint {
        /// Where it begins, counted from 0 in the message.
        at: usize,
    },
    /// The message ends in the middle of a field.
    #[error("field {number} is longer than the message")]
    Truncated {
        /// The field.
        number: usize,
    },
    /// A wire type that no message of ours has, or that does not exist.
    #[error("field {number} has wire type {wire_type}")]
    WireType {
        /// The field.
        number: usize,
        /// What its key says.
        wire_type: usize,
    },
}

/// The fields of a message in the order they come. After an error nothing follows.
pub(crate) fn fields(message: &[u8]) -> Fields<'_> {
    Fields {
        rest: message,
        length: message.len(),
    }
}

pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    length: usize,
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(usize, Field<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Result<(usize, Field<'a>), WireError> {
        let at = self.length - self.rest.len();
        let key = self.varint()?;
        let (number, wire_type) = (key >> 3, key & 7);
        if number == 0 {
            return Err(WireError::Varint { at });
        }
        let field = match wire_type {
            0 => Field::Varint(self.varint()? as u64),
            1 => self.bytes(number, 8).map(|_| Field::Other)?,
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.bytes(number, length)?)
            }
            5 => self.bytes(number, 4).map(|_| Field::Other)?,
            3 => {
                self.group(number)?;
                Field::Other
            }
            _ => return Err(WireError::WireType { number, wire_type }),
        };
        Ok((number, field))
    }

    /// Passes over a group, with those inside it: java-tron keeps fields that it does not know, and so may a block hold one.
    fn group(&mut self, number: usize) -> Result<(), WireError> {
        let mut open = vec![number];
        while let Some(innermost) = open.last().copied() {
            if self.rest.is_empty() {
                return Err(WireError::Truncated { number });
            }
            let key = self.varint()?;
            let (inner, wire_type) = (key >> 3, key & 7);
            match wire_type {
                0 => {
                    self.varint()?;
                }
                1 => {
                    self.bytes(inner, 8)?;
                }
                2 => {
                    let length = self.varint()?;
                    self.bytes(inner, length)?;
                }
                3 => open.push(inner),
                4 if inner == innermost => {
                    open.pop();
                }
                5 => {
                    self.bytes(inner, 4)?;
                }
                _ => {
                    return Err(WireError::WireType {
                        number: inner,
                        wire_type,
                    });
                }
            }
        }
        Ok(())
    }

    fn varint(&mut self) -> Result<usize, WireError> {
        let at = self.length - self.rest.len();
        prost::decode_length_delimiter(&mut self.rest).map_err(|_| WireError::Varint { at })
    }

    fn bytes(&mut self, number: usize, length: usize) -> Result<&'a [u8], WireError> {
        let (bytes, rest) = self
            .rest
            .split_at_checked(length)
            .ok_or(WireError::Truncated { number })?;
        self.rest = rest;
        Ok(bytes)
    }
}
