// What must hold for any bytes given to a decoder of stored values. Included by the fuzz target
// `events` and by the seeded test of `steadfast-model`.

use std::fmt::Debug;

use minicbor::{Decode, Encode};
use steadfast_model::codec::{self, Chunk};
use steadfast_model::execution::Blocked;
use steadfast_model::{
    ActivityTask, ComponentDescription, ComponentRecord, EventKind, EventNumber, ExecutionRecord,
    Failure, Payload, RunId, Status, Timestamp,
};

/// Gives the bytes to every decoder: none panics, and a decoded value is stable.
pub fn decode_everything(bytes: &[u8]) {
    for count in [1, 2, 7, u32::MAX] {
        decode_events(count, bytes);
    }
    decode_value::<EventKind>(bytes);
    decode_value::<ActivityTask>(bytes);
    decode_value::<ExecutionRecord>(bytes);
    decode_value::<ComponentRecord>(bytes);
    decode_value::<ComponentDescription>(bytes);
    decode_value::<Blocked>(bytes);
    decode_value::<Failure>(bytes);
    decode_value::<Payload>(bytes);
    decode_value::<RunId>(bytes);
    decode_value::<Status>(bytes);
    decode_value::<Timestamp>(bytes);
}

fn decode_events(count: u32, bytes: &[u8]) {
    let mut events = Vec::new();
    if codec::decode_events(EventNumber::FIRST, count, bytes, &mut events).is_err() {
        return;
    }
    assert_eq!(
        u32::try_from(events.len()),
        Ok(count),
        "as many events as asked for"
    );
    let chunk = Chunk::encode(&events).expect("there are events");
    let mut again = Vec::new();
    chunk
        .decode_into(&mut again)
        .expect("what was encoded decodes");
    assert_eq!(again, events, "encoding keeps the events");
    assert_eq!(Chunk::encode(&again), Some(chunk), "encoding is stable");
}

fn decode_value<T>(bytes: &[u8])
where
    T: for<'b> Decode<'b, ()> + Encode<()> + PartialEq + Debug,
{
    let Ok(value) = codec::decode::<T>(bytes) else {
        return;
    };
    let encoded = codec::encode(&value);
    let again: T = codec::decode(&encoded).expect("what was encoded decodes");
    assert_eq!(again, value, "encoding keeps the value");
    assert_eq!(codec::encode(&again), encoded, "encoding is stable");
}
