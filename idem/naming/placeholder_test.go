package naming

import "testing"

func TestATemplateThatWasNeverFilledInIsAPlaceholder(t *testing.T) {
	for _, id := range []string{
		"$UNIQID", "{{id}}", "${event.id}", "%{[id]}", "<%= id %>", "undefined", "null", "NULL", "(null)", "None",
		"nil", "NaN", "[object Object]",
		"acme/undefined", "null/created", "order-{{ id }}", "acme/$ID",
	} {
		if !IsPlaceholder(id) {
			t.Errorf("%q is taken for an ID", id)
		}
	}
}

func TestAnIDIsNoPlaceholder(t *testing.T) {
	for _, id := range []string{
		"", "evt_1", "nullable", "undefined_1", "$12.50", "$", "a$b", "0", "{a}", "none-of-it", "acme/created",
		"1f0c5a0e-7b1d-4b8e-9c3e-0a1b2c3d4e5f", "nanananana", "50%",
	} {
		if IsPlaceholder(id) {
			t.Errorf("%q is taken for a placeholder", id)
		}
	}
}

func BenchmarkLookingForAPlaceholder(b *testing.B) {
	for b.Loop() {
		IsPlaceholder("1f0c5a0e-7b1d-4b8e-9c3e-0a1b2c3d4e5f")
	}
}
