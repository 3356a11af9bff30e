//go:build linux

package kubelet

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// volumes makes a folder for each volume of the pod, by name. A ConfigMap or Secret that is not
// there is an error; the caller tries again.
func (p *pod) volumes(ctx context.Context) (map[string]string, error) {
	folders := map[string]string{}
	for _, v := range p.spec.Spec.Volumes {
		at := filepath.Join(p.dir, "volumes", v.Name)
		if err := os.MkdirAll(at, 0o755); err != nil {
			return nil, err
		}
		var files map[string][]byte
		var err error
		switch {
		case v.ConfigMap != nil:
			var m *corev1.ConfigMap
			if m, err = p.k.core.ConfigMaps(p.spec.Namespace).Get(ctx, v.ConfigMap.Name,
				metav1.GetOptions{}); err == nil {
				files = m.BinaryData
				if files == nil {
					files = map[string][]byte{}
				}
				for name, text := range m.Data {
					files[name] = []byte(text)
				}
			}
			err = unless(v.ConfigMap.Optional, err)
		case v.Secret != nil:
			var s *corev1.Secret
			if s, err = p.k.core.Secrets(p.spec.Namespace).Get(ctx, v.Secret.SecretName,
				metav1.GetOptions{}); err == nil {
				files = s.Data
			}
			err = unless(v.Secret.Optional, err)
		case v.EmptyDir != nil:
			err = os.Chmod(at, 0o777)
		case v.PersistentVolumeClaim != nil:
			at, err = p.claimed(ctx, v.PersistentVolumeClaim.ClaimName)
		case v.Projected != nil: // the token of the service account; nothing here asks the API
		default:
			err = fmt.Errorf("volume %s: of a kind that this stand-in does not have", v.Name)
		}
		if err != nil {
			return nil, err
		}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(at, name), text, 0o644); err != nil { //nolint:gosec // read by the container's own user
				return nil, err
			}
		}
		folders[v.Name] = at
	}
	return folders, nil
}

func unless(optional *bool, err error) error {
	if optional != nil && *optional && errors.IsNotFound(err) {
		return nil
	}
	return err
}

// claimed is the folder of the volume that a claim is bound to; it is one of the machine.
func (p *pod) claimed(ctx context.Context, name string) (string, error) {
	claim, err := p.k.core.PersistentVolumeClaims(p.spec.Namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	volume, err := p.k.core.PersistentVolumes().Get(ctx, claim.Spec.VolumeName, metav1.GetOptions{})
	if err != nil {
		return "", err
	}
	if volume.Spec.HostPath == nil {
		return "", fmt.Errorf("volume %s is not a folder of the machine", volume.Name)
	}
	return volume.Spec.HostPath.Path, os.Chmod(volume.Spec.HostPath.Path, 0o777) //nolint:gosec // what fsGroup does
}

// mount puts the volumes of a container into its root, read-only where it says so.
func mount(root string, c *corev1.Container, folders map[string]string) error {
	for _, m := range c.VolumeMounts {
		from := filepath.Join(folders[m.Name], m.SubPath)
		at := filepath.Join(root, m.MountPath)
		for _, dir := range []string{from, at} {
			if err := os.MkdirAll(dir, 0o755); err != nil {
				return err
			}
		}
		if err := syscall.Mount(from, at, "", syscall.MS_BIND, ""); err != nil {
			return fmt.Errorf("mount %s: %w", m.MountPath, err)
		}
		if m.ReadOnly {
			if err := syscall.Mount("", at, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
				return fmt.Errorf("mount %s read-only: %w", m.MountPath, err)
			}
		}
	}
	return nil
}
