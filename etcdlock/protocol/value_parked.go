package protocol

import "hooklock/idem"

// indexValue is what every process knows of a parked execution, and of a request that is kept with
// a record.
type indexValue struct {
	Version int `json:"v"`
	idem.ParkedEntry
}

// EncodeIndex encodes an index entry.
func EncodeIndex(p *idem.ParkedEntry) []byte {
	v := indexValue{othersVersion, *p}
	v.Since = v.Since.UTC()
	return encodeJSON(&v)
}

// DecodeIndex reads an index entry; its execution is in the key.
func DecodeIndex(b []byte) (*idem.ParkedEntry, error) {
	var v indexValue
	switch err := decodeJSON("an index entry", b, othersVersion, &v); {
	case err != nil:
		return nil, err
	case v.State == "":
		return nil, corruptError("an index entry")
	}
	return &v.ParkedEntry, nil
}

// IndexOf returns the index entry of a parked execution.
func IndexOf(l *idem.Lock) *idem.ParkedEntry {
	p := &idem.ParkedEntry{
		Execution: l.Execution, Scope: l.Scope, Route: l.Route, Since: l.Parked.Since, Bytes: l.Parked.Bytes,
		State:  idem.ParkWaiting,
		MaxAge: l.Parked.MaxAge, MaxDuration: l.MaxDuration, ReleaseDelay: l.ReleaseDelay, ReplayBody: l.ReplayBody,
		ReplayFor: l.ReplayFor,
	}
	if l.Parked.Blocked != "" {
		p.State = idem.ParkBlocked
	}
	return p
}

// CodeSkipped is the error code of an execution that was skipped.
const CodeSkipped = "skipped"

// setEndOfParked makes the record one of a parked execution. A skipped one was not cancelled: it
// may run again.
func setEndOfParked(r *idem.Record, l *idem.Lock) {
	r.Tries, r.ParkedOn, r.Failed = l.Parked.Tries, l.Parked.On, l.Parked.FailedWith(r.Tried)
	r.FailedTries = l.Parked.FailuresWith(r.Tried)
	if r.Abort != nil && r.Abort.Skip {
		c := r.Abort
		r.Status, r.Abort, r.RequestKept = idem.Failed, nil, true
		r.Error = &idem.Failure{Code: CodeSkipped, Detail: "skipped by " + c.By}
		if c.Reason != "" {
			r.Error.Detail += ": " + c.Reason
		}
	}
}
