package schema

import (
	"errors"
	"fmt"

	bootstrap "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"                     // named in @type
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"                     // named in @type
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3" // named in @type
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"                          // named in @type
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/anypb"
	"sigs.k8s.io/yaml"
)

// CheckEnvoy says what Envoy's protos refuse in a bootstrap file: unknown fields, wrong types, and
// the rules that are written beside the fields, also in the messages that stand in typed_config.
func CheckEnvoy(text string) error {
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return fmt.Errorf("read YAML: %w", err)
	}
	var b bootstrap.Bootstrap
	if err := protojson.Unmarshal(raw, &b); err != nil {
		return fmt.Errorf("read bootstrap: %w", err)
	}
	return validate(&b)
}

// validate runs the rules of m and of the messages that it carries as Any.
func validate(m proto.Message) error {
	if a, ok := m.(*anypb.Any); ok {
		inner, err := a.UnmarshalNew()
		if err != nil {
			return fmt.Errorf("read %s: %w", a.TypeUrl, err)
		}
		return validate(inner)
	}
	var errs []error
	if v, ok := m.(interface{ ValidateAll() error }); ok {
		errs = append(errs, v.ValidateAll())
	}
	inside := func(v protoreflect.Value) { errs = append(errs, validate(v.Message().Interface())) }
	m.ProtoReflect().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
			if f.MapValue().Message() != nil {
				v.Map().Range(func(_ protoreflect.MapKey, v protoreflect.Value) bool { inside(v); return true })
			}
		case f.Message() == nil:
		case f.IsList():
			for i := range v.List().Len() {
				inside(v.List().Get(i))
			}
		default:
			inside(v)
		}
		return true
	})
	return errors.Join(errs...)
}
