/** Records what happens in a cluster while a case is played, as its API servers see it. */
import {
  disruptedTaint,
  karpenterKinds,
  kinds,
  type KubeObject,
  type Node,
  type NodeClaim,
  type Pod,
  tolerates,
} from '@tenon/api'
import type { Transport } from '@tenon/runtime'
import type { World } from '../world.ts'

export interface PodRecord {
  /** `namespace/name` */
  readonly name: string
  readonly isDaemon: boolean
  /** Whether it is not evicted when its node is disrupted. */
  readonly staysToTheEnd: boolean
  readonly createdMs: number
  node: string | undefined
  runningMs: number | undefined
  finishedMs: number | undefined
  /** When its deletion was requested. */
  deletionMs: number | undefined
  goneMs: number | undefined
  /** When the operator evicted or deleted it. */
  evictedMs: number | undefined
}

export interface NodeRecord {
  readonly name: string
  readonly pool: string | undefined
  readonly createdMs: number
  readyMs: number | undefined
  goneMs: number | undefined
  /** UIDs of workload pods that were ever bound to it. */
  readonly pods: Set<string>
}

/** An Event about a node that rejected the pod it was launched for. */
export interface Refusal {
  /** `namespace/name` */
  readonly pod: string
  readonly text: string
  readonly atMs: number
}

interface EventObject extends KubeObject {
  readonly reason?: string
  readonly message?: string
  readonly involvedObject?: { readonly namespace?: string; readonly name?: string }
}

/** A pod whose instance was deleted while it was running and had not been evicted. */
export interface Loss {
  readonly text: string
  readonly atMs: number
}

/** Follows pods and nodes from outside of the operator. */
export class Observer {
  readonly pods = new Map<string, PodRecord>()
  /** By UID. */
  readonly nodes = new Map<string, NodeRecord>()
  readonly losses: Loss[] = []
  readonly refusals: Refusal[] = []
  /** NodeClaims that were ever created, by name, with their launch times. */
  readonly claims = new Map<string, { readonly createdMs: number; launchedMs: number | undefined }>()
  readonly #world: World
  readonly #uidOf = new Map<string, string>()
  readonly #nodeUidOf = new Map<string, string>()

  constructor(world: World) {
    this.#world = world
    const { local } = world.cluster.server
    local.subscribe<Pod>(kinds.pod, {
      added: (pod) => this.#pod(pod),
      updated: (pod) => this.#pod(pod),
      deleted: (pod) => {
        const known = this.pods.get(pod.metadata.uid ?? '')
        if (known !== undefined) known.goneMs = this.#now()
      },
    })
    local.subscribe<Node>(kinds.node, {
      added: (node) => this.#node(node),
      updated: (node) => this.#node(node),
      deleted: (node) => {
        const known = this.nodes.get(node.metadata.uid ?? '')
        if (known === undefined) return
        known.goneMs = this.#now()
        this.#lost(known, 'the Node was deleted')
      },
    })
    local.subscribe<EventObject>(kinds.event, {
      added: (event) => this.#event(event),
      updated: (event) => this.#event(event),
    })
    local.subscribe<NodeClaim>(karpenterKinds.nodeClaim, {
      added: (claim) => this.#claim(claim),
      updated: (claim) => this.#claim(claim),
    })
  }

  /** Wraps the connection to the API server, and records evictions and deletions of pods. */
  watchingApi(inner: Transport): Transport {
    return {
      send: (request, signal) => {
        const group =
          request.method === 'DELETE' ? /\/nodegroups\/([^/?]+)(\?|$)/.exec(request.path)?.[1] : undefined
        if (group !== undefined) this.#instanceEnds(`clevercloud://${group}`)
        const match = /\/namespaces\/([^/]+)\/pods\/([^/?]+)(\/eviction)?(\?|$)/.exec(request.path)
        const takes = request.method === 'DELETE' || (request.method === 'POST' && match?.[3] !== undefined)
        if (match !== null && takes) this.#taken(`${match[1]}/${match[2]}`)
        return inner.send(request, signal)
      },
    }
  }

  /** Wraps the connection to the cloud, and records deletions of instances with running pods. */
  watchingCloud(inner: Transport): Transport {
    return {
      send: async (request, signal) => {
        const id =
          request.method === 'DELETE' ? /\/instance\/([0-9a-f-]{36})$/.exec(request.path)?.[1] : undefined
        if (id !== undefined) this.#instanceEnds(`exoscale://${id}`)
        return await inner.send(request, signal)
      },
    }
  }

  /** Pods of workloads, in order of their creation. */
  workloadPods(): readonly PodRecord[] {
    return [...this.pods.values()].filter(({ isDaemon }) => !isDaemon)
  }

  /** Whether every existing pod that has not terminated is running. */
  get allRun(): boolean {
    return this.workloadPods().every(
      ({ goneMs, runningMs, finishedMs }) =>
        goneMs !== undefined || runningMs !== undefined || finishedMs !== undefined,
    )
  }

  #now(): number {
    return this.#world.clock.monotonic()
  }

  #pod(pod: Pod): void {
    const uid = pod.metadata.uid ?? ''
    const name = `${pod.metadata.namespace}/${pod.metadata.name}`
    const known: PodRecord = this.pods.get(uid) ?? {
      name,
      isDaemon: pod.metadata.ownerReferences?.some(({ kind }) => kind === 'DaemonSet') === true,
      staysToTheEnd: (pod.spec.tolerations ?? []).some((each) => tolerates(each, disruptedTaint)),
      createdMs: this.#now(),
      node: undefined,
      runningMs: undefined,
      finishedMs: undefined,
      deletionMs: undefined,
      goneMs: undefined,
      evictedMs: undefined,
    }
    this.pods.set(uid, known)
    this.#uidOf.set(name, uid)
    const node = pod.spec.nodeName ?? ''
    if (node !== '' && known.node === undefined) {
      known.node = node
      if (!known.isDaemon) this.nodes.get(this.#nodeUidOf.get(node) ?? '')?.pods.add(uid)
    }
    const { phase } = pod.status ?? {}
    if (phase === 'Running') known.runningMs ??= this.#now()
    if (phase === 'Succeeded' || phase === 'Failed') known.finishedMs ??= this.#now()
    if (pod.metadata.deletionTimestamp !== undefined) known.deletionMs ??= this.#now()
  }

  #node(node: Node): void {
    const uid = node.metadata.uid ?? ''
    const known: NodeRecord = this.nodes.get(uid) ?? {
      name: node.metadata.name,
      pool: this.#poolOf(node),
      createdMs: this.#now(),
      readyMs: undefined,
      goneMs: undefined,
      pods: new Set(),
    }
    this.nodes.set(uid, known)
    this.#nodeUidOf.set(node.metadata.name, uid)
    const isReady = node.status?.conditions?.some(({ type, status }) => type === 'Ready' && status === 'True')
    if (isReady === true) known.readyMs ??= this.#now()
  }

  /** The NodePool of one of Tenon's nodes: users may put any labels on their own NodeGroups. */
  #poolOf({ metadata: { labels = {} } }: Node): string | undefined {
    const name = labels['clever-cloud.com/nodegroup']
    const group =
      name === undefined ? undefined : this.#world.nodeGroups().find((each) => each.metadata.name === name)
    const isOfOthers = group !== undefined && group.metadata.ownerReferences === undefined
    return isOfOthers ? undefined : labels['karpenter.sh/nodepool']
  }

  #event({ reason, message = '', involvedObject }: EventObject): void {
    if (reason !== 'NodeRefused') return
    const pod = `${involvedObject?.namespace}/${involvedObject?.name}`
    this.refusals.push({ pod, text: message, atMs: this.#now() })
  }

  #claim(claim: NodeClaim): void {
    const { name } = claim.metadata
    const known = this.claims.get(name) ?? { createdMs: this.#now(), launchedMs: undefined }
    this.claims.set(name, known)
    if ((claim.status?.providerID ?? '') !== '') known.launchedMs ??= this.#now()
  }

  #taken(name: string): void {
    const known = this.pods.get(this.#uidOf.get(name) ?? '')
    if (known !== undefined) known.evictedMs ??= this.#now()
  }

  /** Called when the instance of a provider ID is deleted. */
  #instanceEnds(providerId: string): void {
    const node = this.#world.nodes().find(({ spec }) => spec?.providerID === providerId)
    const known = this.nodes.get(node?.metadata.uid ?? '')
    if (known !== undefined) this.#lost(known, 'its instance was deleted')
  }

  #lost(node: NodeRecord, what: string): void {
    if (node.readyMs === undefined) return
    const untouched = [...this.pods.values()].filter(
      (pod) =>
        !pod.isDaemon &&
        !pod.staysToTheEnd &&
        pod.node === node.name &&
        pod.runningMs !== undefined &&
        pod.deletionMs === undefined &&
        pod.finishedMs === undefined &&
        pod.goneMs === undefined,
    )
    const [first] = untouched
    if (first === undefined) return
    const text = `node ${node.name}: ${what} while ${untouched.length} pod(s) ran on it that nobody had evicted, ${first.name} among them`
    this.losses.push({ text, atMs: this.#now() })
  }
}
