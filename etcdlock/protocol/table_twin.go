package protocol

// The transactions that make twins one event: events of one route and workflow that have one body
// under two event IDs. They say under which key an event runs, before anything is claimed, and no
// transaction of an execution compares a key of theirs.

// TwinKeys are the keys of one event among its twins.
type TwinKeys struct {
	First  string // names the first event with the body, while the window of that is open
	Alias  string // names the event that this one is
	Record string // of this event, under its own key
}

// NameFirst makes an event the first one of its body, which is known by its own key. It compares
// the record: an event that has run under its own key is that event. Refused, it reads what the
// event is called, and the first one.
func NameFirst(k TwinKeys, first, alias Leased) Op {
	return newTxn(
		Compares{Absent(k.Alias), Absent(k.First), Absent(k.Record)},
		Writes{Put(k.First, first), Put(k.Alias, alias)},
		Writes{getValue(k.Alias), getValue(k.First), getKey(k.Record)})
}

// DropFirst lets no event become one with the first one any more. at is the mod revision of
// k.First.
func DropFirst(first string, at int64) Op {
	return newTxn(
		Compares{modifiedAt(first, at)},
		Writes{deleteKey(first)},
		nil)
}

// JoinFirst makes an event one with the first one of its body. at is the mod revision of k.First,
// so that nothing names an event again that was erased. joined is the key by which the alias is
// found from the first event.
func JoinFirst(k TwinKeys, at int64, joined string, alias, back Leased) Op {
	return newTxn(
		Compares{Absent(k.Alias), modifiedAt(k.First, at), Absent(k.Record)},
		Writes{Put(k.Alias, alias), Put(joined, back)},
		nil)
}
