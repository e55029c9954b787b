import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { type Findings, listOf } from './reporting.ts'

interface ProfileKind {
  readonly name: 'seccomp' | 'apparmor'
  readonly field: 'seccompProfile' | 'appArmorProfile'
  readonly ofContainer: string
  /** Absent: pods have no annotation, and what a pod has by its field is compared with those of its containers. */
  readonly ofPod?: string
}

const kinds: readonly ProfileKind[] = [
  {
    name: 'seccomp',
    field: 'seccompProfile',
    ofContainer: 'container.seccomp.security.alpha.kubernetes.io/',
    ofPod: 'seccomp.security.alpha.kubernetes.io/pod',
  },
  {
    name: 'apparmor',
    field: 'appArmorProfile',
    ofContainer: 'container.apparmor.security.beta.kubernetes.io/',
  },
]

/** The type of profile that an annotation stands for. */
function typeOf(annotation: string): string | undefined {
  if (annotation === 'unconfined') return 'Unconfined'
  if (annotation === 'runtime/default' || annotation === 'docker/default') return 'RuntimeDefault'
  return annotation.startsWith('localhost/') ? 'Localhost' : undefined
}

/**
 * Checks that the annotations with which old manifests choose profiles do not contradict fields.
 * @param path of the pod or template; empty for a pod.
 */
export function checkProfileAnnotations(object: Loose, path: string, found: Findings): void {
  const spec: Loose | undefined = object['spec']
  const annotations: Loose = object['metadata']?.annotations ?? {}
  if (spec === undefined || spec['os']?.name === 'windows') return
  for (const { name, field, ofContainer, ofPod } of kinds) {
    const check = (key: string, context: Loose | undefined, at: string) => {
      const annotation: unknown = ownValue(annotations, key)
      const type: unknown = ownValue(context, field)?.['type']
      if (typeof annotation !== 'string' || type === undefined || type === typeOf(annotation)) return
      const words = `${name} type in annotation and field must match`
      found.forbidden(`${path}spec.${at}securityContext.${field}.type`, words)
    }
    const isInherited = ofPod === undefined
    if (!isInherited) check(ofPod, spec['securityContext'], '')
    for (const list of ['initContainers', 'containers']) {
      for (const [index, container] of listOf(spec, list).entries()) {
        const own: Loose | undefined = container['securityContext']
        const context = ownValue(own, field) === undefined && isInherited ? spec['securityContext'] : own
        check(`${ofContainer}${container['name']}`, context, `${list}[${index}].`)
      }
    }
  }
}
