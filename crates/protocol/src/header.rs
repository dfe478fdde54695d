//! The headers of requests and responses: the bytes between a frame's length and its body.

use crate::{
    api::ApiKey,
    primitive::{DecodeError, EncodeError, Reader, Writer},
};

/// The header of every request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The API key; unknown keys are preserved.
    pub api_key: i16,
    /// The version of the body.
    pub api_version: i16,
    /// The correlation ID; the response repeats it.
    pub correlation_id: i32,
    /// The client's name.
    pub client_id: Option<String>,
}

impl RequestHeader {
    /// Appends the header to `out`, in the version that fits the API and its version. After an error `out` is
    /// unchanged.
    pub fn encode(&self, out: &mut Vec<u8>) -> Result<(), EncodeError> {
        let start = out.len();
        let mut writer = Writer::new(out, false);
        writer.i16(self.api_key);
        writer.i16(self.api_version);
        writer.i32(self.correlation_id);
        // The client ID keeps its two-byte length even in flexible headers.
        let written = writer.at("RequestHeader.client_id").nullable_string(self.client_id.as_deref());
        written.inspect_err(|_| out.truncate(start))?;
        Writer::new(out, self.is_flexible()).no_tagged_fields();
        Ok(())
    }

    /// Decodes the header in the version that fits the API and its version.
    ///
    /// Of an unknown API it decodes the fields that all header versions have.
    pub fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        reader.set_flexible(false);
        let header = Self {
            api_key: reader.at("RequestHeader.api_key").i16()?,
            api_version: reader.at("RequestHeader.api_version").i16()?,
            correlation_id: reader.at("RequestHeader.correlation_id").i32()?,
            client_id: reader.at("RequestHeader.client_id").nullable_string()?,
        };
        reader.set_flexible(header.is_flexible());
        reader.skip_tagged_fields()?;
        Ok(header)
    }

    fn is_flexible(&self) -> bool {
        ApiKey::from_i16(self.api_key).is_some_and(|api| api.request_header_version(self.api_version) >= 2)
    }
}

/// The header of every response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseHeader {
    /// The correlation ID of the request.
    pub correlation_id: i32,
}

impl ResponseHeader {
    /// Appends the header of a response of `api` in `version`.
    pub fn encode(&self, api: ApiKey, version: i16, out: &mut Vec<u8>) {
        let mut writer = Writer::new(out, api.response_header_version(version) >= 1);
        writer.i32(self.correlation_id);
        writer.no_tagged_fields();
    }

    /// Reads the header of a response of `api` in `version`.
    pub fn decode(reader: &mut Reader<'_>, api: ApiKey, version: i16) -> Result<Self, DecodeError> {
        reader.set_flexible(api.response_header_version(version) >= 1);
        let header = Self { correlation_id: reader.at("ResponseHeader.correlation_id").i32()? };
        reader.skip_tagged_fields()?;
        Ok(header)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(api: ApiKey, version: i16, client_id: Option<&str>) -> (RequestHeader, Vec<u8>) {
        let header = RequestHeader {
            api_key: api.as_i16(),
            api_version: version,
            correlation_id: 7,
            client_id: client_id.map(str::to_owned),
        };
        let mut out = Vec::new();
        header.encode(&mut out).unwrap();
        (header, out)
    }

    #[test]
    fn a_request_header_is_flexible_with_its_body() {
        let (_, classic) = request(ApiKey::Metadata, 8, Some("me"));
        assert_eq!(classic, [0, 3, 0, 8, 0, 0, 0, 7, 0, 2, b'm', b'e']);
        let (_, flexible) = request(ApiKey::Metadata, 9, Some("me"));
        assert_eq!(flexible, [0, 3, 0, 9, 0, 0, 0, 7, 0, 2, b'm', b'e', 0]);
    }

    #[test]
    fn a_request_header_round_trips() {
        for (version, client_id) in [(8, None), (9, None), (9, Some("rdkafka"))] {
            let (header, bytes) = request(ApiKey::Metadata, version, client_id);
            let mut reader = Reader::new(&bytes);
            assert_eq!(RequestHeader::decode(&mut reader), Ok(header));
            assert_eq!(reader.finish(), Ok(()));
        }
    }

    #[test]
    fn a_response_header_is_flexible_except_for_api_versions() {
        for (api, version, length) in
            [(ApiKey::Fetch, 11, 4), (ApiKey::Fetch, 12, 5), (ApiKey::ApiVersions, 4, 4)]
        {
            let mut out = Vec::new();
            let header = ResponseHeader { correlation_id: -2 };
            header.encode(api, version, &mut out);
            assert_eq!(out.len(), length);
            assert_eq!(ResponseHeader::decode(&mut Reader::new(&out), api, version), Ok(header));
        }
    }
}
