package protocol

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"go.etcd.io/etcd/api/v3/mvccpb"

	"hooklock/idem"
)

const seenVersion = 1

type seenValue struct {
	Version int `json:"v"`
	idem.SeenMark
}

// SeenOf is the key of what a person has looked at of a concern: seen/<kind>/<route>.
func (y Layout) SeenOf(c idem.Concern) string {
	return y.All(KindSeen) + string(c.Kind) + "/" + url.PathEscape(c.Route)
}

// EncodeSeen returns a mark as it is stored.
func EncodeSeen(s *idem.SeenMark) ([]byte, error) { return json.Marshal(seenValue{seenVersion, *s}) }

// SeenAt reads a mark and its key.
func (y Layout) SeenAt(kv *mvccpb.KeyValue) (*idem.SeenMark, error) {
	if err := checkVersion("a mark", kv.Value, seenVersion); err != nil {
		return nil, err
	}
	var v seenValue
	if err := json.Unmarshal(kv.Value, &v); err != nil {
		return nil, fmt.Errorf("a mark: %w", err)
	}
	kind, escaped, _ := strings.Cut(strings.TrimPrefix(string(kv.Key), y.All(KindSeen)), "/")
	route, err := url.PathUnescape(escaped)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", kv.Key, err)
	}
	v.Concern = idem.Concern{Kind: idem.ConcernKind(kind), Route: route}
	return &v.SeenMark, nil
}
