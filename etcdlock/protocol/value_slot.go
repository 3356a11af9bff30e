package protocol

import (
	"encoding/json"
	"fmt"

	"hooklock/idem"
)

const slotVersion = 1

// SlotHolder is who has a slot, or waits for one.
type SlotHolder struct {
	Version   int              `json:"v"`
	Execution idem.ExecutionID `json:"executionId"`
	Workflow  string           `json:"workflow"`
	Route     string           `json:"route,omitempty"`
	Rule      string           `json:"rule,omitempty"` // see idem.Slot
	// Of a turn: the session that it lives on, and the create revision of its place in the queue; 0 = that of the turn itself.
	Session string `json:"session,omitempty"`
	Since   int64  `json:"since,omitempty"`
}

// EncodeSlot is what a slot says of the lock that has it.
func EncodeSlot(l *idem.Lock, slot *idem.Slot) []byte {
	return encodeHolder(SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow, Route: l.Route, Rule: slot.Rule})
}

// EncodeTurn is a turn of l, which waits at a limit.
func EncodeTurn(l *idem.Lock, limit, session string, since int64) []byte {
	v := SlotHolder{Execution: l.Execution, Workflow: l.Scope.Workflow, Route: l.Route, Session: session, Since: since}
	for i := range l.Slots {
		if l.Slots[i].Limit == limit {
			v.Rule = l.Slots[i].Rule
		}
	}
	return encodeHolder(v)
}

func encodeHolder(v SlotHolder) []byte {
	v.Version = slotVersion
	return v.spell()
}

// DecodeSlot reads a slot, or a turn.
func DecodeSlot(b []byte) (SlotHolder, error) {
	var v SlotHolder
	if err := checkVersion("a slot", b, slotVersion); err != nil {
		return v, err
	}
	if err := json.Unmarshal(b, &v); err != nil || v.Execution == "" {
		return v, fmt.Errorf("read slot: %w", errCorrupt)
	}
	return v, nil
}
