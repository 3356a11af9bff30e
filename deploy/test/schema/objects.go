package schema

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"
)

// Objects reads a YAML stream strictly. Integers stay integers, as CEL rules need them.
func Objects(text string) ([]map[string]any, error) {
	var objects []map[string]any
	for _, doc := range Documents(text) {
		raw, err := yaml.YAMLToJSONStrict([]byte(doc))
		if err != nil {
			return nil, fmt.Errorf("read YAML: %w", err)
		}
		var object map[string]any
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("read object: %w", err)
		}
		if object != nil {
			objects = append(objects, object)
		}
	}
	return objects, nil
}
