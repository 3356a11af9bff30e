package protocol

import (
	"encoding/json"
	"fmt"
	"time"
)

const holdVersion = 1

// holdValue is a stored hold. Until is for operators: etcd ends the hold when it ends the lease.
type holdValue struct {
	Version int       `json:"v"`
	Holder  string    `json:"holder"`
	Until   time.Time `json:"until"`
}

// EncodeHold encodes a hold: for operators its holder, and its end by its writer's clock.
func EncodeHold(holder string, until time.Time) []byte {
	b, _ := json.Marshal(holdValue{holdVersion, holder, until.UTC()}) // strings, numbers and times always encode
	return b
}

// DecodeHold returns when a hold runs out; zero if its value does not say.
func DecodeHold(b []byte) (until time.Time, err error) {
	if err := checkVersion("a hold", b, holdVersion); err != nil {
		return time.Time{}, err
	}
	var v holdValue
	if err := json.Unmarshal(b, &v); err != nil {
		return time.Time{}, fmt.Errorf("read hold: %w", errCorrupt)
	}
	return v.Until, nil
}
