package schema

import (
	"context"
	"fmt"
	"math"
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Kinds are the custom resources that are known, by "group/version/Kind".
type Kinds map[string]*kind

type kind struct {
	structure *structural.Structural
	values    validation.SchemaValidator
	rules     *cel.Validator
}

// Add reads CustomResourceDefinitions, divided by ---; other objects, and lines of templates around
// them, are passed over.
func (k Kinds) Add(text string) error {
	for _, doc := range Documents(text) {
		var crd apiextv1.CustomResourceDefinition
		if err := yaml.Unmarshal([]byte(doc), &crd); err != nil {
			return fmt.Errorf("read CRD: %w", err)
		}
		if crd.Kind != "CustomResourceDefinition" {
			continue
		}
		for _, v := range crd.Spec.Versions {
			if err := k.addVersion(&crd, &v); err != nil {
				return fmt.Errorf("%s %s: %w", crd.Name, v.Name, err)
			}
		}
	}
	return nil
}

func (k Kinds) addVersion(crd *apiextv1.CustomResourceDefinition, v *apiextv1.CustomResourceDefinitionVersion) error {
	var props apiext.JSONSchemaProps
	if err := apiextv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.Schema.OpenAPIV3Schema, &props,
		nil); err != nil {
		return err
	}
	structure, err := structural.NewStructural(&props)
	if err != nil {
		return err
	}
	values, _, err := validation.NewSchemaValidator(&props)
	if err != nil {
		return err
	}
	name := schema.GroupVersionKind{Group: crd.Spec.Group, Version: v.Name, Kind: crd.Spec.Names.Kind}
	k[key(name)] = &kind{structure, values, cel.NewValidator(structure, true, math.MaxInt64)}
	return nil
}

func key(k schema.GroupVersionKind) string { return k.Group + "/" + k.Version + "/" + k.Kind }

// Check is what an API server that has the CRD would refuse in a custom resource, and fields that
// it would drop. It returns nil for a good one.
func (k Kinds) Check(object map[string]any) []string {
	version, _ := object["apiVersion"].(string)
	name, _ := object["kind"].(string)
	known := k[version+"/"+name]
	if known == nil {
		return []string{fmt.Sprintf("no CRD for %s %s", version, name)}
	}
	var problems []string
	pruned := pruning.PruneWithOptions(object, known.structure, true,
		structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
	for _, path := range pruned {
		problems = append(problems, "unknown field "+path)
	}
	defaulting.Default(object, known.structure)
	for _, err := range validation.ValidateCustomResource(nil, object, known.values) {
		problems = append(problems, err.Error())
	}
	if known.rules != nil {
		errs, _ := known.rules.Validate(context.Background(), field.NewPath(""), known.structure, object, nil,
			math.MaxInt64)
		for _, err := range errs {
			problems = append(problems, err.Error())
		}
	}
	return problems
}

// Documents are the documents of a YAML stream, without lines that belong to a template around
// them.
func Documents(text string) []string {
	var docs []string
	var doc strings.Builder
	for line := range strings.Lines(text) {
		switch {
		case strings.HasPrefix(line, "---"):
			docs = append(docs, doc.String())
			doc.Reset()
		case !strings.HasPrefix(line, "{{"):
			doc.WriteString(line)
		}
	}
	return append(docs, doc.String())
}
