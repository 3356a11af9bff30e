package sender

// Reason is why a signature is not accepted.
type Reason string

// The reasons.
const (
	Missing   Reason = "missing"   // the delivery lacks a part that the scheme needs
	Malformed Reason = "malformed" // a part is invalid, or can be read in two ways
	Mismatch  Reason = "mismatch"  // no configured secret or key made the signature
	TooOld    Reason = "too_old"   // the signature is right, its timestamp is older than the tolerance
	TooNew    Reason = "too_new"   // the signature is right, its timestamp is further ahead than the tolerance
)

// SignatureError is the error that Verify returns. Its text contains no secret, no signature and
// nothing of the body, so it may be logged.
type SignatureError struct {
	Scheme string
	Reason Reason
	// Part is the part of the delivery that the reason is about: the name of a header, or another
	// source as a template names it.
	Part string
	// Detail says what was found and what to check.
	Detail string
}

// Error returns the scheme, the reason, the part and the detail.
func (e *SignatureError) Error() string {
	return "verify " + e.Scheme + " signature: " + string(e.Reason) + ": " + e.Part + ": " + e.Detail
}
