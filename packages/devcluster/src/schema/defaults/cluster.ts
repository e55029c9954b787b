import type { Loose } from '../columns/cells.ts'
import { each, fill, fillZero, set, within, withinOrEmpty } from './fill.ts'
import { volumeSourceDefaults } from './volume-sources.ts'

export function namespaceDefaults(namespace: Loose): Loose {
  const name: unknown = namespace['metadata']?.name
  let filled = within(namespace, 'metadata', (metadata) =>
    name === undefined
      ? metadata
      : withinOrEmpty(metadata, 'labels', (labels) => set(labels, 'kubernetes.io/metadata.name', name)),
  )
  filled = withinOrEmpty(filled, 'spec', (spec) =>
    // A namespace being deleted does not get its finalizer back.
    filled['metadata']?.deletionTimestamp === undefined ? fill(spec, { finalizers: ['kubernetes'] }) : spec,
  )
  return withinOrEmpty(filled, 'status', (status) => fill(status, { phase: 'Active' }))
}

export function secretDefaults(secret: Loose): Loose {
  const filled = fill(secret, { type: 'Opaque' })
  const text: Loose | undefined = filled['stringData']
  if (text === undefined) return filled
  const { stringData: _, ...rest } = filled
  const encoded = Object.entries(text).map(([key, value]) => [
    key,
    Buffer.from(String(value)).toString('base64'),
  ])
  return { ...rest, data: { ...rest['data'], ...Object.fromEntries(encoded) } }
}

/** `podCIDR` is the first of `podCIDRs`; sets the one from the other. */
function addressRanges(spec: Loose): Loose {
  const { podCIDR, podCIDRs } = spec
  if (podCIDR !== undefined && podCIDRs === undefined) return { ...spec, podCIDRs: [podCIDR] }
  return podCIDR === undefined && Array.isArray(podCIDRs) ? fill(spec, { podCIDR: podCIDRs[0] }) : spec
}

export function nodeDefaults(node: Loose): Loose {
  return within(within(node, 'spec', addressRanges), 'status', (status) =>
    status['capacity'] === undefined ? status : fill(status, { allocatable: status['capacity'] }),
  )
}

export function persistentVolumeDefaults(volume: Loose): Loose {
  const filled = within(volume, 'spec', (spec) =>
    volumeSourceDefaults(fill(spec, { persistentVolumeReclaimPolicy: 'Retain', volumeMode: 'Filesystem' })),
  )
  return withinOrEmpty(filled, 'status', (status) => fill(status, { phase: 'Pending' }))
}

export function storageClassDefaults(storageClass: Loose): Loose {
  return fill(storageClass, { reclaimPolicy: 'Delete', volumeBindingMode: 'Immediate' })
}

export function csiDriverDefaults(driver: Loose): Loose {
  return within(driver, 'spec', (spec) =>
    fill(spec, {
      attachRequired: true,
      podInfoOnMount: false,
      storageCapacity: false,
      fsGroupPolicy: 'ReadWriteOnceWithFSType',
      volumeLifecycleModes: ['Persistent'],
      requiresRepublish: false,
      seLinuxMount: false,
    }),
  )
}

export function priorityClassDefaults(priorityClass: Loose): Loose {
  return fill(priorityClass, { preemptionPolicy: 'PreemptLowerPriority' })
}

/** A container's limit defaults to the maximum, its request to the default limit or the minimum. */
export function limitRangeDefaults(range: Loose): Loose {
  return within(range, 'spec', (spec) =>
    each(spec, 'limits', (limit) => {
      if (limit['type'] !== 'Container') return limit
      const limits = fill(limit['default'] ?? {}, limit['max'] ?? {})
      const requests = fill(fill(limit['defaultRequest'] ?? {}, limits), limit['min'] ?? {})
      return {
        ...limit,
        ...(Object.keys(limits).length > 0 ? { default: limits } : {}),
        ...(Object.keys(requests).length > 0 ? { defaultRequest: requests } : {}),
      }
    }),
  )
}

const rbacGroup = { apiGroup: 'rbac.authorization.k8s.io' }

export function roleBindingDefaults(binding: Loose): Loose {
  const filled = within(binding, 'roleRef', (reference) => fillZero(reference, rbacGroup))
  return each(filled, 'subjects', (subject) =>
    subject['kind'] === 'User' || subject['kind'] === 'Group' ? fill(subject, rbacGroup) : subject,
  )
}

function webhookDefaults(webhook: Loose, more: Loose): Loose {
  const filled = fill(webhook, {
    failurePolicy: 'Fail',
    matchPolicy: 'Equivalent',
    namespaceSelector: {},
    objectSelector: {},
    timeoutSeconds: 10,
    ...more,
  })
  const scoped = each(filled, 'rules', (rule) => fill(rule, { scope: '*' }))
  return within(scoped, 'clientConfig', (config) =>
    within(config, 'service', (service) => fill(service, { port: 443 })),
  )
}

export function mutatingWebhookDefaults(configuration: Loose): Loose {
  return each(configuration, 'webhooks', (webhook) =>
    webhookDefaults(webhook, { reinvocationPolicy: 'Never' }),
  )
}

export function validatingWebhookDefaults(configuration: Loose): Loose {
  return each(configuration, 'webhooks', (webhook) => webhookDefaults(webhook, {}))
}

function matchDefaults(match: Loose): Loose {
  const filled = fill(match, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} })
  const scoped = (rule: Loose): Loose => fill(rule, { scope: '*' })
  return each(each(filled, 'resourceRules', scoped), 'excludeResourceRules', scoped)
}

export function admissionPolicyDefaults(policy: Loose): Loose {
  return within(policy, 'spec', (spec) =>
    within(fill(spec, { failurePolicy: 'Fail' }), 'matchConstraints', matchDefaults),
  )
}

export function policyBindingDefaults(binding: Loose): Loose {
  return within(binding, 'spec', (spec) => within(spec, 'matchResources', matchDefaults))
}

export function customResourceDefinitionDefaults(crd: Loose): Loose {
  return within(crd, 'spec', (spec) =>
    within(fill(spec, { conversion: { strategy: 'None' } }), 'names', (names) =>
      typeof names['kind'] === 'string'
        ? fill(names, { singular: names['kind'].toLowerCase(), listKind: `${names['kind']}List` })
        : names,
    ),
  )
}

export function apiServiceDefaults(service: Loose): Loose {
  return within(service, 'spec', (spec) =>
    within(spec, 'service', (reference) => fill(reference, { port: 443 })),
  )
}

function deviceRequestDefaults(request: Loose): Loose {
  const mode = (value: Loose): Loose => {
    const filled = each(fill(value, { allocationMode: 'ExactCount' }), 'tolerations', (toleration) =>
      fill(toleration, { operator: 'Equal' }),
    )
    return filled['allocationMode'] === 'ExactCount' ? fill(filled, { count: 1 }) : filled
  }
  return each(within(request, 'exactly', mode), 'firstAvailable', mode)
}

const claimSpecDefaults = (spec: Loose): Loose =>
  within(spec, 'devices', (devices) => each(devices, 'requests', deviceRequestDefaults))

export function resourceClaimDefaults(claim: Loose): Loose {
  return within(claim, 'spec', claimSpecDefaults)
}

export function resourceClaimTemplateDefaults(template: Loose): Loose {
  return within(template, 'spec', (spec) => within(spec, 'spec', claimSpecDefaults))
}
