package kube

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kubernetes/pkg/api/legacyscheme"
	podutil "k8s.io/kubernetes/pkg/api/pod"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	_ "k8s.io/kubernetes/pkg/apis/admissionregistration/install" // its kinds and defaults, in the scheme
	admissionvalidation "k8s.io/kubernetes/pkg/apis/admissionregistration/validation"
	"k8s.io/kubernetes/pkg/apis/apps"
	_ "k8s.io/kubernetes/pkg/apis/apps/install" // its kinds and defaults, in the scheme
	appsvalidation "k8s.io/kubernetes/pkg/apis/apps/validation"
	"k8s.io/kubernetes/pkg/apis/batch"
	_ "k8s.io/kubernetes/pkg/apis/batch/install" // its kinds and defaults, in the scheme
	batchvalidation "k8s.io/kubernetes/pkg/apis/batch/validation"
	"k8s.io/kubernetes/pkg/apis/core"
	_ "k8s.io/kubernetes/pkg/apis/core/install" // its kinds and defaults, in the scheme
	corevalidation "k8s.io/kubernetes/pkg/apis/core/validation"
	"k8s.io/kubernetes/pkg/apis/networking"
	_ "k8s.io/kubernetes/pkg/apis/networking/install" // its kinds and defaults, in the scheme
	networkingvalidation "k8s.io/kubernetes/pkg/apis/networking/validation"
	"k8s.io/kubernetes/pkg/apis/policy"
	_ "k8s.io/kubernetes/pkg/apis/policy/install" // its kinds and defaults, in the scheme
	policyvalidation "k8s.io/kubernetes/pkg/apis/policy/validation"
)

// Decode reads one object strictly: an unknown field or one that is there twice is an error. Its
// defaults are not filled in.
func Decode(doc string) (runtime.Object, error) {
	codecs := serializer.NewCodecFactory(legacyscheme.Scheme, serializer.EnableStrict)
	object, _, err := codecs.UniversalDeserializer().Decode([]byte(doc), nil, nil)
	if err != nil {
		return nil, fmt.Errorf("read object: %w", err)
	}
	return object, nil
}

// Validate is what an API server refuses in an object that somebody creates in the namespace
// "default". Kinds that are not known here are an error.
func Validate(object runtime.Object) error {
	versioned := object.DeepCopyObject()
	legacyscheme.Scheme.Default(versioned)
	internal, err := legacyscheme.Scheme.ConvertToVersion(versioned, runtime.InternalGroupVersioner)
	if err != nil {
		return fmt.Errorf("convert: %w", err)
	}
	return problems(internal).ToAggregate()
}

func problems(object runtime.Object) field.ErrorList {
	switch o := object.(type) {
	case *apps.Deployment:
		namespaced(&o.Namespace)
		return appsvalidation.ValidateDeployment(o, podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *apps.StatefulSet:
		namespaced(&o.Namespace)
		return appsvalidation.ValidateStatefulSet(o, podutil.GetValidationOptionsFromPodTemplate(&o.Spec.Template, nil))
	case *batch.Job:
		namespaced(&o.Namespace)
		manual := true // the API server makes a selector of the Job's ID; a test has none
		o.Spec.ManualSelector, o.Spec.Selector = &manual, &metav1.LabelSelector{MatchLabels: o.Spec.Template.Labels}
		return batchvalidation.ValidateJob(o, batchvalidation.JobValidationOptions{})
	case *core.Pod:
		namespaced(&o.Namespace)
		return corevalidation.ValidatePodCreate(o,
			podutil.GetValidationOptionsFromPodSpecAndMeta(&o.Spec, nil, &o.ObjectMeta, nil))
	case *core.Service:
		namespaced(&o.Namespace)
		// the API server gives it an address; a test has none to give
		o.Spec.ClusterIP, o.Spec.ClusterIPs = "None", []string{"None"}
		o.Spec.IPFamilies = []core.IPFamily{core.IPv4Protocol}
		single := core.IPFamilyPolicySingleStack
		o.Spec.IPFamilyPolicy = &single
		return corevalidation.ValidateServiceCreate(o)
	case *core.ConfigMap:
		namespaced(&o.Namespace)
		return corevalidation.ValidateConfigMap(o)
	case *core.Secret:
		namespaced(&o.Namespace)
		return corevalidation.ValidateSecret(o)
	case *core.ServiceAccount:
		namespaced(&o.Namespace)
		return corevalidation.ValidateServiceAccount(o)
	case *networking.NetworkPolicy:
		namespaced(&o.Namespace)
		return networkingvalidation.ValidateNetworkPolicy(o, networkingvalidation.NetworkPolicyValidationOptions{})
	case *networking.Ingress:
		namespaced(&o.Namespace)
		return networkingvalidation.ValidateIngressCreate(o)
	case *policy.PodDisruptionBudget:
		namespaced(&o.Namespace)
		return policyvalidation.ValidatePodDisruptionBudget(o, policyvalidation.PodDisruptionBudgetValidationOptions{})
	case *admissionregistration.MutatingAdmissionPolicy:
		return admissionvalidation.ValidateMutatingAdmissionPolicy(o)
	case *admissionregistration.MutatingAdmissionPolicyBinding:
		return admissionvalidation.ValidateMutatingAdmissionPolicyBinding(o)
	case *admissionregistration.ValidatingAdmissionPolicy:
		return admissionvalidation.ValidateValidatingAdmissionPolicy(o)
	case *admissionregistration.ValidatingAdmissionPolicyBinding:
		return admissionvalidation.ValidateValidatingAdmissionPolicyBinding(o)
	}
	return field.ErrorList{field.NotSupported(field.NewPath("kind"), fmt.Sprintf("%T", object),
		[]string{"what Validate lists"})}
}

// namespaced gives an object the namespace that kubectl would.
func namespaced(namespace *string) {
	if *namespace == "" {
		*namespace = "default"
	}
}
