/** Finds webhooks without a ready endpoint, which would make the API server reject Tenon's writes. */
import { karpenterKinds, kinds, type KubeObject, type ResourceType } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import type { Check, Cloud, Finding } from '../check.ts'
import { type Definition, definitionKind, type ServiceReference } from './crds.ts'

interface Webhook {
  readonly name?: string
  readonly failurePolicy?: string
  readonly clientConfig?: { readonly service?: ServiceReference; readonly url?: string }
  readonly rules?: readonly {
    readonly apiGroups?: readonly string[]
    readonly resources?: readonly string[]
    readonly operations?: readonly string[]
  }[]
}

interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly Webhook[]
}

interface EndpointSlice extends KubeObject {
  readonly endpoints?: readonly { readonly conditions?: { readonly ready?: boolean } }[]
}

const configurationKind = (kind: string, plural: string): ResourceType<WebhookConfiguration> => ({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind,
  plural,
  namespaced: false,
})
const configurationKinds = [
  configurationKind('ValidatingWebhookConfiguration', 'validatingwebhookconfigurations'),
  configurationKind('MutatingWebhookConfiguration', 'mutatingwebhookconfigurations'),
]

const sliceKind: ResourceType<EndpointSlice> = {
  group: 'discovery.k8s.io',
  version: 'v1',
  kind: 'EndpointSlice',
  plural: 'endpointslices',
  namespaced: true,
}

/** Resources that the controller writes with any provider, by group. */
const written: readonly (readonly [group: string, resource: string])[] = [
  [karpenterKinds.nodePool.group, 'nodepools'],
  [karpenterKinds.nodePool.group, 'nodeclaims'],
  [karpenterKinds.nodePool.group, 'nodeclaims/status'],
  ['', 'nodes'],
  ['', 'pods'],
  ['', 'pods/eviction'],
  ['coordination.k8s.io', 'leases'],
]

export const webhooks: Check = {
  name: 'webhooks',
  run: async ({ kube, cloud }, signal) => {
    const own = [...written, ...nodeClassesOf(cloud)]
    const endpoints = new ServiceEndpoints(kube, signal)
    const findings: Finding[] = []
    for (const kind of configurationKinds)
      for (const configuration of await kube.list(kind, { signal }))
        findings.push(...(await configurationFindings(kind.kind, configuration, own, endpoints)))
    const groups = new Set(own.map(([group]) => group))
    for (const definition of await kube.list(definitionKind, { signal }))
      if (groups.has(definition.spec?.group ?? 'none'))
        findings.push(...(await conversionFindings(definition, endpoints)))
    return { summary: 'no webhook is in the way', findings }
  },
}

function nodeClassesOf(cloud: Cloud): readonly (readonly [string, string])[] {
  return cloud.kind === 'unknown'
    ? []
    : cloud.module.nodeClasses.map(({ group, plural }): [string, string] => [group, plural])
}

async function configurationFindings(
  kind: string,
  { metadata, webhooks: all = [] }: WebhookConfiguration,
  own: readonly (readonly [string, string])[],
  endpoints: ServiceEndpoints,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const webhook of all) {
    const service = webhook.clientConfig?.service
    if (webhook.failurePolicy === 'Ignore' || service === undefined) continue
    const matched = own.filter(([group, resource]) => isMatched(webhook, group, resource))
    const problem = matched.length === 0 ? undefined : await endpoints.problemOf(service)
    if (problem === undefined) continue
    const resources = matched.map(([group, resource]) => (group === '' ? resource : `${resource}.${group}`))
    findings.push({
      status: 'fail',
      message: `${kind} ${metadata.name}: webhook ${webhook.name ?? ''} refuses writes of ${resources.join(', ')}, for ${problem}`,
      fix: `start what answers it, or if it is left over: kubectl delete ${kind.toLowerCase()} ${metadata.name}`,
    })
  }
  return findings
}

function isMatched({ rules = [] }: Webhook, group: string, resource: string): boolean {
  const [plural = '', subresource] = resource.split('/')
  return rules.some(
    ({ apiGroups = [], resources = [], operations = [] }) =>
      (apiGroups.includes('*') || apiGroups.includes(group)) &&
      resources.some(
        (each) =>
          each === '*/*' ||
          each === resource ||
          (each === '*' && subresource === undefined) ||
          each === `${plural}/*` ||
          (subresource !== undefined && each === `*/${subresource}`),
      ) &&
      operations.some((each) => each !== 'CONNECT'),
  )
}

async function conversionFindings(
  { metadata, spec }: Definition,
  endpoints: ServiceEndpoints,
): Promise<readonly Finding[]> {
  const service = spec?.conversion?.webhook?.clientConfig?.service
  if (spec?.conversion?.strategy !== 'Webhook' || service === undefined) return []
  const problem = await endpoints.problemOf(service)
  if (problem === undefined) return []
  return [
    {
      status: 'fail',
      message: `CustomResourceDefinition ${metadata.name}: its conversion webhook answers nothing, for ${problem}`,
      fix: `tenon crds apply --force-conflicts, whose definitions have no conversion webhook`,
    },
  ]
}

/** Finds out whether the Services of webhooks have ready endpoints, and remembers the results. */
class ServiceEndpoints {
  readonly #kube: Pick<KubeClient, 'get' | 'list'>
  readonly #signal: AbortSignal
  readonly #known = new Map<string, string | undefined>()

  constructor(kube: Pick<KubeClient, 'get' | 'list'>, signal: AbortSignal) {
    this.#kube = kube
    this.#signal = signal
  }

  /** Why a Service cannot answer, as a clause; undefined if it may. */
  async problemOf({ namespace = '', name = '' }: ServiceReference): Promise<string | undefined> {
    const key = `${namespace}/${name}`
    if (!this.#known.has(key)) this.#known.set(key, await this.#ask(namespace, name))
    return this.#known.get(key)
  }

  async #ask(namespace: string, name: string): Promise<string | undefined> {
    const signal = this.#signal
    const service = await this.#kube.get(kinds.service, { namespace, name }, { signal })
    if (service === undefined) return `Service ${namespace}/${name} does not exist`
    const labelSelector = { matchLabels: { 'kubernetes.io/service-name': name } }
    const slices = await this.#kube.list(sliceKind, { namespace, labelSelector, signal })
    const hasReady = slices.some(({ endpoints = [] }) =>
      endpoints.some(({ conditions }) => conditions?.ready !== false),
    )
    return hasReady ? undefined : `Service ${namespace}/${name} has no ready endpoint`
  }
}
