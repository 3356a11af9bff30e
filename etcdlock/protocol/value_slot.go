package protocol

import (
	"encoding/json"

	"hooklock/idem"
)

// SlotHolder is an execution that has a slot, or waits for one.
type SlotHolder struct {
	Version   int              `json:"v"`               // of the form of the value
	Execution idem.ExecutionID `json:"executionId"`     // the one that has it, or waits
	Workflow  string           `json:"workflow"`        // of that execution
	Route     string           `json:"route,omitempty"` // of that execution
	Rule      string           `json:"rule,omitempty"`  // see idem.Slot
	// Of a slot waiter: its session, and the create revision of its queue entry; 0 = that of the
	// slot waiter itself.
	Session string `json:"session,omitempty"`
	Since   int64  `json:"since,omitempty"`
}

// EncodeSlot encodes the slot of a lock.
func EncodeSlot(l *idem.Lock, slot *idem.Slot) []byte {
	return encodeHolder(SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow, Route: l.Route, Rule: slot.Rule})
}

// EncodeSlotWaiter encodes l as a slot waiter of a limit.
func EncodeSlotWaiter(l *idem.Lock, limit, session string, since int64) []byte {
	v := SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow, Route: l.Route, Session: session, Since: since}
	for i := range l.Slots {
		if l.Slots[i].LimitName == limit {
			v.Rule = l.Slots[i].Rule
		}
	}
	return encodeHolder(v)
}

func encodeHolder(v SlotHolder) []byte {
	v.Version = othersVersion
	b, _ := json.Marshal(v) // text always encodes
	return b
}

// DecodeSlot reads a slot, or a slot waiter.
func DecodeSlot(b []byte) (SlotHolder, error) {
	var v SlotHolder
	err := decodeJSON("a slot", b, othersVersion, &v)
	if err == nil && v.Execution == "" {
		err = corruptError("a slot")
	}
	return v, err
}
