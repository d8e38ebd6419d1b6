use super::*;
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

/// A medium in memory that can be full: what does not fit is written as far as it does, as disks do.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    pub(crate) bytes: Arc<Mutex<Vec<u8>>>,
    pub(crate) room: Arc<Mutex<Option<usize>>>,
}

impl Memory {
    pub(crate) fn boxed(&self) -> Box<dyn Medium> {
        Box::new(self.clone())
    }

    pub(crate) fn set_room(&self, room: Option<usize>) {
        *self.room.lock().unwrap() = room;
    }

    pub(crate) fn len(&self) -> usize {
        self.bytes.lock().unwrap().len()
    }
}

impl Medium for Memory {
    fn read(&mut self) -> io::Result<Vec<u8>> {
        Ok(self.bytes.lock().unwrap().clone())
    }

    fn append(&mut self, new: &[u8]) -> io::Result<()> {
        let mut bytes = self.bytes.lock().unwrap();
        let room = self.room.lock().unwrap().unwrap_or(usize::MAX).saturating_sub(bytes.len());
        bytes.extend(&new[..new.len().min(room)]);
        if room < new.len() { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) }
    }

    fn cut(&mut self, len: u64) -> io::Result<()> {
        self.bytes.lock().unwrap().truncate(usize::try_from(len).unwrap());
        Ok(())
    }

    fn replace(&mut self, new: &[u8]) -> io::Result<()> {
        // Both are there for a moment.
        let room = self.room.lock().unwrap().unwrap_or(usize::MAX);
        if room < self.len() + new.len() {
            return Err(io::ErrorKind::StorageFull.into());
        }
        *self.bytes.lock().unwrap() = new.to_vec();
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn record(kind: u8, text: &str) -> Record {
    Record { kind, json: text.as_bytes().to_vec() }
}

fn some() -> impl Strategy<Value = Vec<Record>> {
    let one = (any::<u8>(), prop::collection::vec(any::<u8>(), 0..64));
    prop::collection::vec(one.prop_map(|(kind, json)| Record { kind, json }), 0..12)
}

proptest! {
    #[test]
    fn a7_whatever_is_cut_or_flipped_the_records_before_it_are_read(
        records in some(),
        cut in any::<prop::sample::Index>(),
        flip in prop::option::of((any::<prop::sample::Index>(), 0_u8..8)),
    ) {
        let mut bytes = encode(&records).unwrap();
        let mut damage = bytes.len();
        if let (Some((at, bit)), false) = (flip, bytes.is_empty()) {
            let at = at.index(bytes.len());
            bytes[at] ^= 1 << bit;
            damage = at;
        }
        bytes.truncate(cut.index(bytes.len() + 1));
        damage = damage.min(bytes.len());
        let memory = Memory::default();
        *memory.bytes.lock().unwrap() = bytes.clone();
        let (mut file, opened) = Records::open(memory.boxed()).unwrap();
        // All that lie before the damage, and nothing that was never written.
        let mut whole = 0;
        let mut at = 0;
        for record in &records {
            at += HEAD_LEN + 1 + record.json.len();
            whole += usize::from(at <= damage);
        }
        prop_assert_eq!(&opened.records, &records[..whole]);
        prop_assert_eq!(opened.cut_bytes, (bytes.len() as u64) - file.len());
        // And it goes on behind them.
        let more = record(7, "more");
        file.append(std::slice::from_ref(&more), true).unwrap();
        let (_, again) = Records::open(memory.boxed()).unwrap();
        prop_assert_eq!(again.records.last(), Some(&more));
        prop_assert_eq!((again.records.len(), again.cut_bytes), (whole + 1, 0));
    }
}

#[test]
fn a6_a_write_that_does_not_fit_leaves_nothing_behind() {
    let memory = Memory::default();
    let (mut file, _) = Records::open(memory.boxed()).unwrap();
    file.append(&[record(1, "one")], true).unwrap();
    memory.set_room(Some(memory.len() + 5));
    let error = file.append(&[record(1, "two")], true).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(memory.len() as u64, file.len());
    memory.set_room(None);
    file.append(&[record(1, "three")], true).unwrap();
    let (_, opened) = Records::open(memory.boxed()).unwrap();
    assert_eq!(opened.records, [record(1, "one"), record(1, "three")]);
}

#[test]
fn a_file_is_replaced_as_a_whole_and_read_again() {
    let dir = crate::testing::Dir::new();
    let path = dir.path().join("records");
    let (mut file, opened) = Records::open(Box::new(Disk::open(&path).unwrap())).unwrap();
    assert_eq!(opened, Opened::default());
    file.append(&[record(1, "one"), record(2, "two")], true).unwrap();
    file.replace(&[record(2, "two")]).unwrap();
    file.append(&[record(3, "three")], false).unwrap();
    assert_eq!(file.read().unwrap(), [record(2, "two"), record(3, "three")]);
    let (again, opened) = Records::open(Box::new(Disk::open(&path).unwrap())).unwrap();
    assert_eq!(opened.records, [record(2, "two"), record(3, "three")]);
    assert_eq!(again.len(), std::fs::metadata(&path).unwrap().len());
    assert!(!dir.path().join("records.new").exists());
}

#[test]
fn a_disk_that_is_really_full_is_an_error_and_no_damage() {
    let full = Path::new("/dev/full");
    if !full.exists() {
        return;
    }
    let mut disk = Disk::open(full).unwrap();
    let error = disk.append(b"anything").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
}

#[test]
fn zeros_are_no_record() {
    assert_eq!(decode(&[0; 64]), (Vec::new(), 0));
    let long = Record { kind: 1, json: vec![0; RECORD_LEN_MAX + 1] };
    assert!(encode(&[long]).is_err());
}

#[test]
fn a_file_that_cannot_be_written_is_read_and_written_as_soon_as_it_can_be() {
    let dir = crate::testing::Dir::new();
    let path = dir.path().join("sub").join("file");
    let error = Disk::open(&path).err().unwrap();
    let (mut records, opened) = Records::open(Box::new(Unwritable::new(&path, &error))).unwrap();
    assert_eq!(opened, Opened::default());
    assert!(records.append(&[record(1, "1")], true).is_err());
    std::fs::create_dir(dir.path().join("sub")).unwrap();
    records.append(&[record(1, "2")], true).unwrap();
    assert_eq!(records.read().unwrap(), [record(1, "2")]);
    // One that is there is read, though it could not be opened to be written.
    let medium = Box::new(Unwritable::new(&path, &io::Error::other("read-only")));
    assert_eq!(Records::open(medium).unwrap().1.records, [record(1, "2")]);
    // What cannot even be read is not written over.
    let is_dir = dir.path().join("sub");
    let (mut records, _) =
        Records::open(Box::new(Unwritable::new(&is_dir, &io::Error::other("odd")))).unwrap();
    assert_eq!(records.replace(&[]).unwrap_err().to_string(), "odd");
}

#[tokio::test(start_paused = true)]
async fn a_disk_that_hangs_takes_one_thread_and_is_said_to_hang() {
    let aside = Aside::default();
    assert_eq!(aside.run(|| Ok(7)).await.unwrap(), 7);
    let (wake, hangs) = std::sync::mpsc::channel::<()>();
    let passes = || tokio::time::advance(PATIENCE * 2);
    let hangs = aside.run(move || hangs.recv().map_err(io::Error::other));
    let (hung, ()) = tokio::join!(hangs, passes());
    assert_eq!(hung.unwrap_err().kind(), io::ErrorKind::TimedOut);
    // The next does not take another thread, and does not wait for ever either.
    let (next, ()) = tokio::join!(aside.run(|| Ok(())), passes());
    assert_eq!(next.unwrap_err().to_string(), "the disk did not answer for 10 s");
    wake.send(()).unwrap();
    assert_eq!(aside.run(|| Ok(8)).await.unwrap(), 8);
}
