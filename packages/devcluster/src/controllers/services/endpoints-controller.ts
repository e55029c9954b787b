import { isDeepStrictEqual } from 'node:util'
import { kinds, type KubeObject, type Node, type Pod } from '@tenon/api'
import type { ControllerContext } from '../context.ts'
import { type Index, keyOf, namespaceOf, type ObjectCache, splitKey } from '../loop/object-cache.ts'
import type { Steps } from '../loop/reconcile-loop.ts'
import { controllerReference } from '../objects/owners.ts'
import { isReady } from '../objects/pods.ts'
import { labelsInclude } from '../objects/selectors.ts'
import { canonicalJson } from '../objects/template-hash.ts'
import { type Service, workloads } from '../objects/workloads.ts'
import { type Endpoint, type EndpointPort, endpointOf, hasFixedPorts, portsOf } from './endpoints-of.ts'

const serviceNameLabel = 'kubernetes.io/service-name'
const managedByLabel = 'endpointslice.kubernetes.io/managed-by'
const managedBy = 'endpointslice-controller.k8s.io'
const endpointsPerSlice = 100
const endpointsAddressLimit = 1_000
const podsPerStep = 500
const slicesPerStep = 8

interface EndpointSlice extends KubeObject {
  readonly addressType?: string
  readonly endpoints?: readonly Endpoint[]
  readonly ports?: readonly EndpointPort[]
}

/** Endpoints with the same ports, as a slice has one set of ports. */
interface PortGroup {
  readonly ports: readonly EndpointPort[]
  readonly endpoints: Map<string, Endpoint>
}

/** Publishes the pods of every Service with a selector, as EndpointSlices and Endpoints. */
export function serviceEndpoints(context: ControllerContext): void {
  const { store } = context
  const services = store.cache(workloads.service)
  const byNamespace = services.index(namespaceOf)
  const nodes = store.cache(kinds.node)
  const pods = store.cache(kinds.pod)
  const podsByNamespace = pods.index(namespaceOf)
  const slices = store.cache<EndpointSlice>(workloads.endpointSlice)
  const slicesByService = slices.index(serviceOfSlice)
  const queue = context.loop.queue('endpoint-slices', (key) =>
    new ServiceReconcile(context, nodes, podsByNamespace, slicesByService, key).run(),
  )
  services.onChange((_now, _before, latest) => queue.add(keyOf(latest)))
  slices.onChange((_now, _before, latest) => {
    for (const key of serviceOfSlice(latest)) queue.add(key)
  })
  pods.onChange((now, before, latest) => {
    if (now !== undefined && before !== undefined && !isRelevant(now, before)) return
    const namespace = latest.metadata.namespace ?? ''
    for (const service of byNamespace.of(namespace)) {
      const { selector } = service.spec
      if (selector === undefined || Object.keys(selector).length === 0) continue
      const touched =
        (now !== undefined && labelsInclude(now.metadata.labels, selector)) ||
        (before !== undefined && labelsInclude(before.metadata.labels, selector))
      if (touched) queue.add(keyOf(service))
    }
  })
}

function serviceOfSlice(slice: EndpointSlice): readonly string[] {
  const labels = slice.metadata.labels
  const name = labels?.[serviceNameLabel]
  if (name === undefined || labels?.[managedByLabel] !== managedBy) return []
  return [`${slice.metadata.namespace}/${name}`]
}

function isRelevant(now: Pod, before: Pod): boolean {
  return (
    now.metadata.labels !== before.metadata.labels ||
    now.metadata.deletionTimestamp !== before.metadata.deletionTimestamp ||
    now.status?.podIP !== before.status?.podIP ||
    now.status?.phase !== before.status?.phase ||
    isReady(now) !== isReady(before)
  )
}

class ServiceReconcile {
  readonly #context: ControllerContext
  readonly #nodes: ObjectCache<Node>
  readonly #podsByNamespace: Index<Pod>
  readonly #slicesByService: Index<EndpointSlice>
  readonly #key: string

  constructor(
    context: ControllerContext,
    nodes: ObjectCache<Node>,
    podsByNamespace: Index<Pod>,
    slicesByService: Index<EndpointSlice>,
    key: string,
  ) {
    this.#context = context
    this.#nodes = nodes
    this.#podsByNamespace = podsByNamespace
    this.#slicesByService = slicesByService
    this.#key = key
  }

  *run(): Steps {
    const { store } = this.#context
    const { namespace = '', name } = splitKey(this.#key)
    const service = store.get(workloads.service, namespace, name)
    if (service === undefined) {
      for (const slice of this.#slicesByService.of(this.#key)) store.delete(workloads.endpointSlice, slice)
      const endpoints = store.get(workloads.endpoints, namespace, name)
      if (endpoints !== undefined) store.delete(workloads.endpoints, endpoints)
      return undefined
    }
    const { selector } = service.spec
    if (service.metadata.deletionTimestamp !== undefined || selector === undefined) return undefined
    if (Object.keys(selector).length === 0 || service.spec.type === 'ExternalName') return undefined
    const groups = yield* this.#groups(service, selector)
    yield* this.#writeSlices(service, groups)
    yield
    this.#writeEndpoints(service, groups)
    return { touched: groups.reduce((sum, group) => sum + group.endpoints.size, 0) }
  }

  *#groups(
    service: Service,
    selector: Readonly<Record<string, string>>,
  ): Generator<undefined, PortGroup[], undefined> {
    const groups = new Map<string, PortGroup>()
    const fixed = hasFixedPorts(service)
    let seen = 0
    for (const pod of this.#podsByNamespace.of(service.metadata.namespace ?? '')) {
      if (++seen % podsPerStep === 0) yield
      if (!labelsInclude(pod.metadata.labels, selector)) continue
      const endpoint = endpointOf(service, pod, this.#nodes.get(pod.spec.nodeName ?? ''))
      if (endpoint === undefined) continue
      const [first] = fixed ? groups.values() : []
      const group = first ?? groupOf(groups, portsOf(service, pod))
      group.endpoints.set(endpoint.targetRef.uid, endpoint)
    }
    return [...groups.values()]
  }

  /** Fills existing slices first and does not move endpoints, so that few slices change. */
  *#writeSlices(service: Service, groups: readonly PortGroup[]): Generator<undefined, void, undefined> {
    const { store } = this.#context
    const slices = [...this.#slicesByService.of(this.#key)].sort((a, b) =>
      a.metadata.name < b.metadata.name ? -1 : 1,
    )
    const used = new Set<EndpointSlice>()
    const wanted = groups.length > 0 ? groups : [{ ports: [], endpoints: new Map<string, Endpoint>() }]
    for (const group of wanted) {
      const mine = slices.filter(
        (slice) => !used.has(slice) && isDeepStrictEqual(slice.ports ?? [], group.ports),
      )
      for (const slice of mine) used.add(slice)
      yield* this.#writeGroup(service, group, mine)
    }
    for (const slice of slices) if (!used.has(slice)) store.delete(workloads.endpointSlice, slice)
  }

  *#writeGroup(
    service: Service,
    group: PortGroup,
    slices: readonly EndpointSlice[],
  ): Generator<undefined, void, undefined> {
    const { store } = this.#context
    const left = new Map(group.endpoints)
    const kept = slices.map((slice) => {
      const endpoints: Endpoint[] = []
      for (const { targetRef } of slice.endpoints ?? []) {
        const endpoint = left.get(targetRef.uid)
        if (endpoint === undefined) continue
        endpoints.push(endpoint)
        left.delete(targetRef.uid)
      }
      return { slice, endpoints }
    })
    const rest = [...left.values()]
    for (const { endpoints } of kept) endpoints.push(...rest.splice(0, endpointsPerSlice - endpoints.length))
    const nonEmpty = kept.filter(({ endpoints }) => endpoints.length > 0).length
    for (const [index, { slice, endpoints }] of kept.entries()) {
      if (index % slicesPerStep === slicesPerStep - 1) yield
      const spare = endpoints.length === 0 && (nonEmpty > 0 || index > 0)
      if (spare) store.delete(workloads.endpointSlice, slice)
      else
        store.modify<EndpointSlice>(workloads.endpointSlice, slice, (latest) =>
          withEndpoints(latest, endpoints),
        )
    }
    if (kept.length === 0 && rest.length === 0) this.#createSlice(service, group.ports, [])
    while (rest.length > 0) {
      this.#createSlice(service, group.ports, rest.splice(0, endpointsPerSlice))
      yield
    }
  }

  #createSlice(service: Service, ports: readonly EndpointPort[], list: readonly Endpoint[]): void {
    const { name, namespace = '', labels } = service.metadata
    const headless = service.spec.clusterIP === 'None' && { 'service.kubernetes.io/headless': '' }
    const slice: EndpointSlice = {
      apiVersion: 'discovery.k8s.io/v1',
      kind: 'EndpointSlice',
      metadata: {
        name: '',
        generateName: `${name}-`,
        namespace,
        labels: { ...labels, ...headless, [serviceNameLabel]: name, [managedByLabel]: managedBy },
        ownerReferences: [controllerReference(service, workloads.service)],
      },
      addressType: service.spec.ipFamilies?.[0] ?? 'IPv4',
      endpoints: list,
      ports,
    }
    this.#context.store.create<EndpointSlice>(workloads.endpointSlice, slice)
  }

  #writeEndpoints(service: Service, groups: readonly PortGroup[]): void {
    const { store } = this.#context
    const { name, namespace = '', labels } = service.metadata
    const subsets = groups.map(subsetOf)
    const present = store.get(workloads.endpoints, namespace, name)
    if (present !== undefined) {
      store.modify(workloads.endpoints, present, (latest) => {
        const old = (latest as KubeObject & { readonly subsets?: unknown }).subsets ?? []
        return isDeepStrictEqual(old, subsets) ? latest : { ...latest, subsets }
      })
      return
    }
    const metadata = { name, namespace, ...(labels !== undefined && { labels }) }
    const object = { apiVersion: 'v1', kind: 'Endpoints', metadata, subsets }
    store.create<KubeObject>(workloads.endpoints, object)
  }
}

function groupOf(groups: Map<string, PortGroup>, ports: readonly EndpointPort[]): PortGroup {
  const id = canonicalJson(ports)
  const group = groups.get(id) ?? { ports, endpoints: new Map<string, Endpoint>() }
  groups.set(id, group)
  return group
}

function withEndpoints(slice: EndpointSlice, list: readonly Endpoint[]): EndpointSlice {
  return isDeepStrictEqual(slice.endpoints ?? [], list) ? slice : { ...slice, endpoints: list }
}

/** One subset of Endpoints, with at most a thousand addresses. */
function subsetOf(group: PortGroup): object {
  const all = [...group.endpoints.values()].filter((each) => !each.conditions.terminating)
  const address = (each: Endpoint) => ({
    ip: each.addresses[0],
    ...(each.hostname !== undefined && { hostname: each.hostname }),
    ...(each.nodeName !== undefined && { nodeName: each.nodeName }),
    targetRef: each.targetRef,
  })
  const byIp = (a: { ip: string | undefined }, b: { ip: string | undefined }) =>
    (a.ip ?? '') < (b.ip ?? '') ? -1 : 1
  const listed = all.slice(0, endpointsAddressLimit)
  const ready = listed
    .filter((each) => each.conditions.ready)
    .map(address)
    .sort(byIp)
  const notReady = listed
    .filter((each) => !each.conditions.ready)
    .map(address)
    .sort(byIp)
  const ports = group.ports.map(({ name, ...rest }) => (name === '' ? rest : { name, ...rest }))
  return {
    ...(ready.length > 0 && { addresses: ready }),
    ...(notReady.length > 0 && { notReadyAddresses: notReady }),
    ...(ports.length > 0 && { ports }),
  }
}
