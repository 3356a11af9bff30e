package client

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// names are the JSON members of a struct.
func names(t reflect.Type) []string {
	var found []string
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" && name != "-" {
			found = append(found, name)
		}
	}
	slices.Sort(found)
	return found
}

func TestTheTypesHaveTheFieldsOfTheAPI(t *testing.T) {
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
				Enum       []string
			}
		}
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	for name, typed := range map[string]any{
		"Lock": Lock{}, "LockPage": LockPage{}, "Execution": Execution{}, "ExecutionPage": ExecutionPage{},
		"Step": Step{}, "Failure": Failure{}, "Response": Response{},
		"Parked": Parked{}, "Evidence": Evidence{}, "BulkResult": BulkResult{}, "BulkItem": BulkItem{}, "Job": Job{},
		"JobFailure": JobFailure{}, "JobList": JobList{},
		"CountList": CountList{}, "RouteCounts": RouteCounts{}, "CountStep": CountStep{}, "Counts": Counts{},
		"Report": Report{}, "SuggestionList": SuggestionList{}, "Suggestion": Suggestion{}, "Predicted": Predicted{},
		"RouteReport": RouteReport{}, "Finding": Finding{}, "Example": Example{},
		"Attempt": Attempt{}, "Arrivals": Arrivals{}, "Arrival": Arrival{}, "KeptAnswer": KeptAnswer{},
		"Audit": Audit{}, "RouteRules": RouteRules{}, "RouteSender": RouteSender{}, "SenderLimit": SenderLimit{},
		"RouteAnswer": RouteAnswer{}, "RouteList": RouteList{}, "AuditPage": AuditPage{},
		"BadSignature": BadSignature{}, "BadSignaturePage": BadSignaturePage{},
		"ReplicaStatus": ReplicaStatus{}, "SessionStatus": SessionStatus{}, "EtcdStatus": EtcdStatus{},
		"Contact": Contact{}, "ConfigStatus": ConfigStatus{},
		"Refusal": Refusal{}, "Crowd": Crowd{}, "ParkedStatus": ParkedStatus{}, "RouteRate": RouteRate{},
		"ArrivalBehind": ArrivalBehind{}, "ReleasedExecution": ReleasedExecution{}, "FailedAnswer": FailedAnswer{},
		"RouteCount": RouteCount{}, "Pause": Pause{}, "PauseList": PauseList{}, "EndedPause": EndedPause{},
		"SeenMark": SeenMark{}, "SeenList": SeenList{}, "PauseStatus": PauseStatus{}, "RunningConfig": RunningConfig{},
		"Reloaded": Reloaded{},
	} {
		said := slices.Sorted(maps.Keys(api.Components.Schemas[name].Properties))
		if read := names(reflect.TypeOf(typed)); !slices.Equal(said, read) {
			t.Errorf("%s: the API has\n%v\nand the client\n%v", name, said, read)
		}
	}
	var known []string
	for _, s := range Statuses {
		known = append(known, string(s))
	}
	if !slices.Equal(api.Components.Schemas["Status"].Enum, known) {
		t.Errorf("the API has the statuses %v", api.Components.Schemas["Status"].Enum)
	}
	codes := api.Components.Schemas["Code"].Enum
	for _, code := range []string{
		CodeBadRequest, CodeUnauthorized, CodeForbidden, CodeHostRefused, CodeNotFound, CodeLockNotFound,
		CodeExecutionNotFound, CodePauseNotFound, CodeMarkNotFound, CodeJobNotFound, CodeNoEmbeddedEtcd,
		CodeAlreadyFinished,
		CodeWorkflowLocked, CodeLockWaitTimeout, CodeInFlight, CodeSuperseded, CodeStatusChanged, CodeStaleToken,
		CodeLockExpired, CodeLockLost, CodeNotParked, CodeRequestNotKept, CodeAnswerNotKept, CodeCancelRequested,
		CodeConfigRefused, CodeRateLimited, CodeStoreUnavailable,
	} {
		if !slices.Contains(codes, code) {
			t.Errorf("the API has no code %s", code)
		}
	}
}
