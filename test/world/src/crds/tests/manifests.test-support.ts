/** Builders of the smallest objects that Tenon's CRDs accept. */
import type { Manifest } from './crd-case.test-support.ts'

type Fields = Readonly<Record<string, unknown>>

const nodeClassRef = { group: 'karpenter.exoscale.com', kind: 'ExoscaleNodeClass', name: 'standard' }

/** A template's or a claim's spec: a reference, no requirements, and what is given. */
function templateSpec(fields: Fields = {}): Fields {
  return { nodeClassRef, requirements: [], ...fields }
}

/** A NodePool with the smallest template and what is given. */
export function aNodePool(spec: Fields = {}): Manifest {
  return {
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: {},
    spec: { template: { spec: templateSpec() }, ...spec },
  }
}

/** A NodePool whose template's spec has these fields. */
export function poolOf(fields: Fields): Manifest {
  return aNodePool({ template: { spec: templateSpec(fields) } })
}

/** A NodePool whose template has these labels. */
export function poolLabelled(labels: Readonly<Record<string, string>>): Manifest {
  return aNodePool({ template: { metadata: { labels }, spec: templateSpec() } })
}

/** A NodePool with this reference; undefined fields are omitted. */
export function poolRefersTo(fields: Fields): Manifest {
  return poolOf({ nodeClassRef: { ...nodeClassRef, ...fields } })
}

export function aNodeClaim(fields: Fields = {}, metadata: Manifest['metadata'] = {}): Manifest {
  return { apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', metadata, spec: templateSpec(fields) }
}

/** A NodeOverlay of everything that changes nothing, with what is given. */
export function aNodeOverlay(spec: Fields = {}): Manifest {
  return {
    apiVersion: 'karpenter.sh/v1alpha1',
    kind: 'NodeOverlay',
    metadata: {},
    spec: { requirements: [], ...spec },
  }
}

/** A CapacityBuffer for nothing, with what is given. */
export function aCapacityBuffer(spec: Fields = {}): Manifest {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityBuffer',
    metadata: { namespace: 'default' },
    spec,
  }
}

/** A CapacityQuota of these amounts. */
export function aCapacityQuota(resources: Fields): Manifest {
  return {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityQuota',
    metadata: {},
    spec: { limits: { resources } },
  }
}

/** An ExoscaleNodeClass that follows the control plane's version, with what is given. */
export function anExoscaleNodeClass(spec: Fields = {}): Manifest {
  return {
    apiVersion: 'karpenter.exoscale.com/v1',
    kind: 'ExoscaleNodeClass',
    metadata: {},
    spec: { imageTemplateSelector: {}, ...spec },
  }
}

export function aKwokNodeClass(rest: Fields = {}): Manifest {
  return { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass', metadata: {}, ...rest }
}

/** A CleverNodeClass without a spec, and what is given. */
export function aCleverNodeClass(rest: Fields = {}): Manifest {
  return {
    apiVersion: 'karpenter.clever-cloud.com/v1alpha1',
    kind: 'CleverNodeClass',
    metadata: {},
    ...rest,
  }
}

/** A ClusterAPINodeClass without a spec, and what is given. */
export function aClusterAPINodeClass(rest: Fields = {}): Manifest {
  return {
    apiVersion: 'karpenter.cluster.x-k8s.io/v1alpha1',
    kind: 'ClusterAPINodeClass',
    metadata: {},
    ...rest,
  }
}

/** A requirement on a label. */
export function requirement(operator: string, values?: readonly string[], more: Fields = {}): Fields {
  return { key: 'example.com/tier', operator, ...(values && { values }), ...more }
}
