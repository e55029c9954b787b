/** Kinds and fields of earlier releases and other providers, with their replacements. */
import { ownValue } from '@tenon/api'
import type { ProviderModule } from '@tenon/provider'

const nodePoolForm = 'write apiVersion karpenter.sh/v1, kind NodePool'

const kinds: Readonly<Record<string, string>> = {
  'karpenter.sh/v1alpha5 Provisioner': `${nodePoolForm}: spec.requirements, taints and labels go under spec.template, providerRef becomes spec.template.spec.nodeClassRef, ttlSecondsAfterEmpty becomes spec.disruption with consolidationPolicy WhenEmpty and consolidateAfter`,
  'karpenter.sh/v1alpha5 Machine':
    'instances are NodeClaims of karpenter.sh/v1 now, made by the controller; leave it out',
  'karpenter.sh/v1beta1 NodePool': `${nodePoolForm}: nodeClassRef takes group, kind and name, expireAfter moves to spec.template.spec, kubelet settings to the node class`,
  'karpenter.sh/v1beta1 NodeClaim':
    'write apiVersion karpenter.sh/v1: nodeClassRef takes group, kind and name; claims are made by the controller as a rule',
  'karpenter.sh/v1 NodeOverlay': 'write apiVersion karpenter.sh/v1alpha1',
}

/** API groups of Karpenter and its providers. */
const karpenterGroups = /^karpenter(\.|$)/
/** Node classes of providers that Tenon does not have. */
const foreignNodeClass = /^(EC2NodeClass|AKSNodeClass|GCENodeClass|AWSNodeTemplate)$/

/** What to write instead of a kind that is not served; undefined for kinds that are not Karpenter's. */
export function replacementOf(
  apiVersion: string,
  kind: string,
  providers: readonly ProviderModule[],
): string | undefined {
  const known = [kinds, ...providers.map(({ formerNodeClasses }) => formerNodeClasses)]
    .map((former) => ownValue(former, `${apiVersion} ${kind}`))
    .find((fix) => fix !== undefined)
  if (known !== undefined) return known
  const group = apiVersion.split('/')[0] ?? ''
  if (!karpenterGroups.test(group)) return undefined
  if (foreignNodeClass.test(kind)) return nodeClassForm(providers)
  if (kind === 'NodePool' || kind === 'NodeClaim') return `write apiVersion karpenter.sh/v1, kind ${kind}`
  return 'see `tenon crds` for the kinds and versions there are'
}

function nodeClassForm(providers: readonly ProviderModule[]): string {
  const served = providers.flatMap(({ nodeClasses }) => nodeClasses)
  const names = served.map(({ group, version, kind }) => `${kind} of ${group}/${version}`)
  return `use a node class that Tenon serves: ${names.join(' or ')}`
}

const poolSpec = 'spec.template.spec'

/** Fields that a kind used to have, or that users expect there. */
const fields: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  NodePool: {
    'spec.disruption.expireAfter': `write it as ${poolSpec}.expireAfter`,
    [`${poolSpec}.kubelet`]: 'kubelet settings belong to the node class: its spec.kubelet',
    [`${poolSpec}.resources`]: 'limits of the pool are spec.limits',
    [`${poolSpec}.nodeClassRef.apiVersion`]: 'write its part before the slash as nodeClassRef.group',
    'spec.requirements': `write it as ${poolSpec}.requirements`,
    'spec.taints': `write it as ${poolSpec}.taints`,
    'spec.startupTaints': `write it as ${poolSpec}.startupTaints`,
    'spec.labels': 'write it as spec.template.metadata.labels',
    'spec.annotations': 'write it as spec.template.metadata.annotations',
    'spec.providerRef': `write it as ${poolSpec}.nodeClassRef with group, kind and name`,
    'spec.consolidation': 'write spec.disruption.consolidationPolicy',
    'spec.limits.resources': 'write its entries directly under spec.limits',
    'spec.ttlSecondsUntilExpired': `write ${poolSpec}.expireAfter, for instance 720h`,
    'spec.ttlSecondsAfterEmpty':
      'write spec.disruption with consolidationPolicy: WhenEmpty and consolidateAfter, for instance 30s',
  },
  NodeClaim: {
    'spec.nodeClassRef.apiVersion': 'write its part before the slash as nodeClassRef.group',
    'spec.kubelet': 'kubelet settings belong to the node class: its spec.kubelet',
  },
}

export function formerField(kind: string, field: string): string | undefined {
  return ownValue(ownValue(fields, kind), field)
}

/** Values that a field used to have. */
const values: Readonly<Record<string, string>> = {
  'spec.disruption.consolidationPolicy WhenUnderutilized': 'it is called WhenEmptyOrUnderutilized now',
}

export function formerValue(field: string, value: unknown): string | undefined {
  return typeof value === 'string' ? ownValue(values, `${field} ${value}`) : undefined
}
