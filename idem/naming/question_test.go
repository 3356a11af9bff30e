package naming

import "testing"

func TestValuesOfAQuestionAreEscaped(t *testing.T) {
	k, err := NewKeys(KeySpec{Route: "r", Workflow: "w", EventID: "{body.id}", Missing: MissingPayload,
		Question: "/orders/{body.id}?of={body.shop}"})
	if err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]string{
		`{"id":"a-1","shop":"s"}`:         "/orders/a-1?of=s",
		`{"id":"../admin?x=1#","shop":7}`: "/orders/..%2Fadmin%3Fx%3D1%23?of=7",
		`{"id":"a&b","shop":"\u00e9"}`:    "/orders/a%26b?of=%C3%A9",
		`{"id":"..","shop":"s"}`:          "",
		`{"id":"a"}`:                      "",
	} {
		names, err := k.Name(&Message{Method: []byte("POST"), Path: []byte("/"),
			Fields: []Field{{Name: []byte("Content-Type"), Value: []byte("application/json")}}, Body: []byte(body)})
		if err != nil || names.Question != want {
			t.Errorf("%s asks %q %v, want %q", body, names.Question, err, want)
		}
	}
}
