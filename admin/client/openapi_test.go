package client

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

func TestTheCodesAreThoseOfTheAPI(t *testing.T) {
	text, err := os.ReadFile("../openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var api struct {
		Components struct {
			Schemas struct{ Code struct{ Enum []string } }
		}
	}
	if err := json.Unmarshal(text, &api); err != nil {
		t.Fatal(err)
	}
	for _, code := range []string{
		CodeBadRequest, CodeUnauthorized, CodeForbidden, CodeHostRefused, CodeNotFound, CodeLockNotFound,
		CodeExecutionNotFound, CodePauseNotFound, CodeMarkNotFound, CodeJobNotFound, CodeNoEmbeddedEtcd,
		CodeAlreadyFinished,
		CodeWorkflowLocked, CodeLockWaitTimeout, CodeInFlight, CodeSuperseded, CodeStatusChanged, CodeStaleToken,
		CodeLockExpired, CodeLockLost, CodeNotParked, CodeRequestNotKept, CodeAnswerNotKept, CodeCancelRequested,
		CodeConfigRefused, CodeRateLimited, CodeStoreUnavailable,
	} {
		if !slices.Contains(api.Components.Schemas.Code.Enum, code) {
			t.Errorf("the API has no code %s", code)
		}
	}
}
