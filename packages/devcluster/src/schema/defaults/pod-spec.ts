import { ownValue } from '@tenon/api'
import type { Loose } from '../columns/cells.ts'
import { containerDefaultsOf, pullPolicy } from './containers.ts'
import { each, fill, set, within } from './fill.ts'
import { podResourceDefaults, qosClass } from './pod-resources.ts'
import { volumeSourceDefaults } from './volume-sources.ts'

const specDefaults = {
  dnsPolicy: 'ClusterFirst',
  restartPolicy: 'Always',
  schedulerName: 'default-scheduler',
  securityContext: {},
  terminationGracePeriodSeconds: 30,
}

/** Octal 0644: mounted config is readable by everyone. */
const fileMode = { defaultMode: 420 }

/** Defaults of pod specs in pods and templates. */
function podSpecDefaults(spec: Loose): Loose {
  let filled = fill(spec, specDefaults)
  filled = serviceAccountAliases(filled)
  filled = each(filled, 'containers', containerDefaultsOf)
  if (filled['initContainers'] !== undefined) filled = each(filled, 'initContainers', containerDefaultsOf)
  if (filled['ephemeralContainers'] !== undefined)
    filled = each(filled, 'ephemeralContainers', containerDefaultsOf)
  if (filled['volumes'] !== undefined) filled = each(filled, 'volumes', volumeDefaults)
  return filled
}

/** Sets the deprecated `serviceAccount` to `serviceAccountName`. */
function serviceAccountAliases(spec: Loose): Loose {
  const name = spec['serviceAccountName'] ?? spec['serviceAccount']
  if (name === undefined) return spec
  return set(set(spec, 'serviceAccountName', name), 'serviceAccount', name)
}

/** With hostNetwork, container ports are host ports. Since Kubernetes 1.28 not in templates. */
function hostPorts(spec: Loose): Loose {
  if (spec['hostNetwork'] !== true) return spec
  const ports = (container: Loose): Loose =>
    each(container, 'ports', (port) =>
      (port['hostPort'] ?? 0) === 0 ? { ...port, hostPort: port['containerPort'] } : port,
    )
  return each(each(spec, 'containers', ports), 'initContainers', ports)
}

function volumeDefaults(volume: Loose): Loose {
  if (Object.keys(volume).length === 1 && volume['name'] !== undefined) return { ...volume, emptyDir: {} }
  let filled = volume
  for (const source of ['secret', 'configMap', 'downwardAPI', 'projected']) {
    if (ownValue(filled, source) !== undefined)
      filled = within(filled, source, (value) => fill(value, fileMode))
  }
  filled = within(filled, 'downwardAPI', fieldItems)
  filled = within(filled, 'projected', (projected) => each(projected, 'sources', projectionDefaults))
  filled = volumeSourceDefaults(filled)
  filled = within(filled, 'image', (image) => fill(image, { pullPolicy: pullPolicy(image['reference']) }))
  return within(filled, 'ephemeral', (ephemeral) =>
    within(ephemeral, 'volumeClaimTemplate', (template) =>
      within(template, 'spec', (spec) => fill(spec, { volumeMode: 'Filesystem' })),
    ),
  )
}

function fieldItems(source: Loose): Loose {
  return each(source, 'items', (item) =>
    within(item, 'fieldRef', (field) => fill(field, { apiVersion: 'v1' })),
  )
}

function projectionDefaults(source: Loose): Loose {
  const filled = within(source, 'serviceAccountToken', (token) => fill(token, { expirationSeconds: 3600 }))
  return within(filled, 'downwardAPI', fieldItems)
}

/** Defaults of a pod template in a workload. */
export function templateDefaults(template: Loose): Loose {
  return within(template, 'spec', podSpecDefaults)
}

export const appArmorPrefix = 'container.apparmor.security.beta.kubernetes.io/'

/** What an AppArmor annotation of old manifests means; undefined if it names no profile. */
function appArmorProfile(annotation: unknown): Loose | undefined {
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' }
  if (annotation === 'unconfined') return { type: 'Unconfined' }
  const [, localhostProfile] =
    typeof annotation === 'string' ? (/^localhost\/(.+)$/.exec(annotation) ?? []) : []
  return localhostProfile === undefined ? undefined : { type: 'Localhost', localhostProfile }
}

/** Whether a container has its AppArmor profile by an annotation alone. */
export function isConfinedByAnnotation(
  spec: Loose,
  annotations: Loose | undefined,
  container: Loose,
): boolean {
  const annotation: unknown = ownValue(annotations, `${appArmorPrefix}${container['name']}`)
  if (annotation === undefined || container['securityContext']?.appArmorProfile !== undefined) return false
  const ofPod = spec['securityContext']?.appArmorProfile
  return (
    spec['os']?.name !== 'windows' &&
    (ofPod === undefined || JSON.stringify(appArmorProfile(annotation)) !== JSON.stringify(ofPod))
  )
}

/** Converts AppArmor annotations of old manifests. */
function withAppArmor(spec: Loose, annotations: Loose | undefined): Loose {
  if (annotations === undefined || !Object.keys(annotations).some((key) => key.startsWith(appArmorPrefix))) {
    return spec
  }
  const profiled = (container: Loose): Loose => {
    const profile = appArmorProfile(ownValue(annotations, `${appArmorPrefix}${container['name']}`))
    if (profile === undefined || !isConfinedByAnnotation(spec, annotations, container)) return container
    return { ...container, securityContext: { ...container['securityContext'], appArmorProfile: profile } }
  }
  return each(each(spec, 'containers', profiled), 'initContainers', profiled)
}

export function podDefaults(pod: Loose): Loose {
  const filled = within(pod, 'spec', (given) => {
    // The minimum of one second, as 0 would be a forced deletion.
    const spec =
      given['terminationGracePeriodSeconds'] < 0 ? { ...given, terminationGracePeriodSeconds: 1 } : given
    return fill(
      withAppArmor(hostPorts(podResourceDefaults(podSpecDefaults(spec))), pod['metadata']?.annotations),
      {
        enableServiceLinks: true,
      },
    )
  })
  const status: Loose | undefined = filled['status']
  if (status?.['phase'] !== undefined && status['qosClass'] !== undefined) return filled
  return {
    ...filled,
    status: fill(status ?? {}, { phase: 'Pending', qosClass: qosClass(filled['spec'] ?? {}) }),
  }
}
