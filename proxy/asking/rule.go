package asking

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"hooklock/idem"
)

// Rule says how a route's answers are understood.
type Rule struct {
	Executed, NotExecuted Reply
	// Authorization is the value of that header; "" = none is sent.
	Authorization string
}

// Reply describes an answer: all of it must fit.
type Reply struct {
	Status idem.StatusSet
	// Body are members of a JSON body, by their path (data.state, items.0.id), each with its text.
	Body map[string]string
}

// outcomeOf returns what an answer says. An answer that fits both descriptions, or none, says
// nothing.
func (r *Rule) outcomeOf(status int, body []byte) idem.Outcome {
	executed, not := r.Executed.matchesAnswer(status, body), r.NotExecuted.matchesAnswer(status, body)
	switch {
	case executed == not:
		return idem.Unknown
	case executed:
		return idem.Executed
	}
	return idem.NotExecuted
}

func (r *Reply) matchesAnswer(status int, body []byte) bool {
	if !r.Status.Has(status) {
		return false
	}
	if len(r.Body) == 0 {
		return true
	}
	var whole any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&whole) != nil {
		return false
	}
	for path, want := range r.Body {
		if text, ok := textAt(whole, path); !ok || text != want {
			return false
		}
	}
	return true
}

// textAt returns the text of a member: a string as it is, a number, true, false or null as JSON
// spells it. An object or a list has none.
func textAt(value any, path string) (string, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch in := value.(type) {
		case map[string]any:
			value = in[step]
			if _, there := in[step]; !there {
				return "", false
			}
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(in) {
				return "", false
			}
			value = in[i]
		default:
			return "", false
		}
	}
	switch v := value.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		return strconv.FormatBool(v), true
	case nil:
		return "null", true
	}
	return "", false
}
