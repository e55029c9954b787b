/** What kube-apiserver warns of in pods and templates, as other fields have replaced it. */
import { ownValue } from '@tenon/api'
import type { StoredObject } from '../../../contract.ts'
import { appArmorPrefix, isConfinedByAnnotation } from '../../../schema/index.ts'
import { podTemplatePaths, valueAt } from '../../kinds/pod-templates.ts'
import type { Served } from '../../kinds/registry.ts'
import { containersOf, type SecuredPod } from './standards.ts'

/** Types of volumes that are deprecated, by the name that a warning has for them. */
const volumeTypes: Readonly<Record<string, string>> = {
  cephfs: 'cephfs: deprecated in v1.28, non-functional in v1.31+',
  flocker: 'flocker: deprecated in v1.22, non-functional in v1.25+',
  gitRepo: 'gitRepo: deprecated in v1.11, and disabled by default in v1.33+',
  glusterfs: 'glusterfs: deprecated in v1.25, non-functional in v1.26+',
  photonPersistentDisk: 'photonPersistentDisk: deprecated in v1.11, non-functional in v1.16+',
  quobyte: 'quobyte: deprecated in v1.22, non-functional in v1.25+',
  rbd: 'rbd: deprecated in v1.28, non-functional in v1.31+',
  scaleIO: 'scaleIO: deprecated in v1.16, non-functional in v1.22+',
  storageos: 'storageOS: deprecated in v1.22, non-functional in v1.25+',
}

/**
 * Warnings about the AppArmor annotations of a pod, which come before it is validated.
 * @param object as the user wrote it: defaults turn the annotations into fields.
 */
export function appArmorWarnings({ collection }: Served, object: StoredObject): readonly string[] {
  const pod: SecuredPod = object
  if (collection !== 'pods') return []
  return containersOf(pod).flatMap((container) => appArmorWarning(pod, container, ''))
}

/** Warnings about deprecated volumes and annotations of a valid pod or of a template. */
export function deprecationWarnings({ collection }: Served, object: StoredObject): readonly string[] {
  if (collection === 'pods') return [...volumeWarnings(object, ''), ...seccompWarnings(object, '', () => [])]
  const fields = ownValue(podTemplatePaths, collection)
  if (fields === undefined) return []
  const template: SecuredPod = valueAt(object, fields) ?? {}
  const path = `${fields}.`
  const confined = (container: Container) => appArmorWarning(template, container, path)
  return [...volumeWarnings(template, path), ...seccompWarnings(template, path, confined)]
}

type Container = ReturnType<typeof containersOf>[number]

function volumeWarnings({ spec }: SecuredPod, path: string): readonly string[] {
  return (spec?.volumes ?? []).flatMap((volume, index) =>
    Object.keys(volume)
      .flatMap((type) => ownValue(volumeTypes, type) ?? [])
      .map((text) => `${path}spec.volumes[${index}].${text}`),
  )
}

/** @param more further warnings about a container. */
function seccompWarnings(
  pod: SecuredPod,
  path: string,
  more: (container: Container) => readonly string[],
): readonly string[] {
  const annotations = pod.metadata?.annotations
  const warningsOf = (key: string, { securityContext }: Pick<Container, 'securityContext'>) =>
    ownValue(annotations, key) === undefined || securityContext?.seccompProfile !== undefined
      ? []
      : [
          `${path}metadata.annotations[${key}]: non-functional in v1.27+; use the "seccompProfile" field instead`,
        ]
  return [
    ...warningsOf('seccomp.security.alpha.kubernetes.io/pod', pod.spec ?? {}),
    ...containersOf(pod).flatMap((container) => [
      ...warningsOf(`container.seccomp.security.alpha.kubernetes.io/${container.name}`, container),
      ...more(container),
    ]),
  ]
}

function appArmorWarning({ spec = {}, metadata }: SecuredPod, container: Container, path: string) {
  if (!isConfinedByAnnotation(spec, metadata?.annotations, container)) return []
  const key = `${appArmorPrefix}${container.name}`
  return [
    `${path}metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`,
  ]
}
