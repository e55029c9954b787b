/** Feeds every invariant and collects violations. */
import { karpenterKinds, kinds, type KubeObject, type Node, type NodeClaim, type Pod } from '@tenon/api'
import type { Clock, HttpRequest, Transport } from '@tenon/runtime'
import type { World } from '../../world.ts'
import type { WorldCloud } from '../cloud/world-cloud.ts'
import type { EventLog } from '../event-log.ts'
import type { LyingCloud } from '../faults/lying-cloud.ts'
import type { ViewFaults } from '../faults/view-faults.ts'
import type { Weather } from '../faults/weather.ts'
import type { OperatorProcess } from '../process/operator-process.ts'
import { apiFaultKinds, cloudOfStory, type CloudName, type Story } from '../story.ts'
import { bufferPodsStayInside } from './buffers.ts'
import {
  claimSpecUnchanged,
  expiredInTime,
  finalizerFirst,
  finalizerLast,
  noOrphanedInstance,
  oneInstancePerClaim,
  registrationTaintRemoved,
} from './instances.ts'
import { driversAwaited, noSecondNodeForDevices } from './devices.ts'
import { gangNodesOpenTogether, gangsWholeOrReleased, runningGangsKept, strangersKept } from './gangs.ts'
import { healthyInstancesKept, initializedInTime, launchesBounded, nothingBoughtInVain } from './evidence.ts'
import {
  foreignGroupsKept,
  groupsDeletedOnEvidence,
  holdOutsKept,
  onlyFirstNodesStamped,
} from './node-groups.ts'
import {
  boundMachinesKept,
  foreignDeploymentsKept,
  machinesBoundOnce,
  noUnclaimedMachine,
} from './machine-deployments.ts'
import {
  deadlineKept,
  drainedBeforeEnd,
  emptyNodesAreEmpty,
  placementAllowed,
  podsLeftAlone,
  protectedNodesKept,
} from './pods.ts'
import { budgetsKept, consolidateAfterKept, limitsKept } from './pools.ts'
import { leaseGivenBack, onlyTheLeaderWrites } from './processes.ts'
import { consolidationSaves, marksTakenOff, nothingReplacedTwice } from './replacements.ts'
import { paceOf } from '../pace.ts'
import { agesKept, oneZoneAtATime, quotasKept, readyPodKept, repairsBounded, surgedOnce } from './wanted.ts'
import { type ApiWrite, blindMsIn, type Invariant, type Rule, type Scene, type Violation } from './scene.ts'

const invariants: readonly Invariant[] = [
  oneInstancePerClaim,
  finalizerFirst,
  finalizerLast,
  noOrphanedInstance,
  claimSpecUnchanged,
  expiredInTime,
  registrationTaintRemoved,
  healthyInstancesKept,
  initializedInTime,
  nothingBoughtInVain,
  launchesBounded,
  podsLeftAlone,
  drainedBeforeEnd,
  deadlineKept,
  placementAllowed,
  protectedNodesKept,
  emptyNodesAreEmpty,
  limitsKept,
  budgetsKept,
  consolidateAfterKept,
  consolidationSaves,
  nothingReplacedTwice,
  marksTakenOff,
  onlyTheLeaderWrites,
  leaseGivenBack,
  bufferPodsStayInside,
  gangsWholeOrReleased,
  gangNodesOpenTogether,
  runningGangsKept,
  strangersKept,
  quotasKept,
  surgedOnce,
  readyPodKept,
  repairsBounded,
  agesKept,
  oneZoneAtATime,
]

/** Invariants of one cloud only. */
const invariantsOf: Readonly<Record<CloudName, readonly Invariant[]>> = {
  exoscale: [noSecondNodeForDevices, driversAwaited],
  'cluster-api': [foreignDeploymentsKept, machinesBoundOnce, boundMachinesKept, noUnclaimedMachine],
  'clever-cloud': [foreignGroupsKept, groupsDeletedOnEvidence, holdOutsKept, onlyFirstNodesStamped],
}

const minute = 60_000

/** Watches one run. */
export class Checker {
  readonly #world: World
  readonly #cloud: WorldCloud
  readonly #lies: LyingCloud
  readonly #views: ViewFaults
  readonly #clock: Clock
  readonly #log: EventLog
  readonly #story: Story
  readonly #weather: Weather
  readonly #rules: readonly Rule[]
  /** The callbacks of all rules, by event. */
  readonly #listeners = new Map<keyof Rule, readonly ((...detailOf: readonly unknown[]) => void)[]>()
  readonly #pods = new Map<string, Pod>()
  readonly #podsByNode = new Map<string, Map<string, Pod>>()
  readonly #boundAt = new Map<string, number>()
  readonly #nodesByProviderId = new Map<string, string>()
  readonly #claimsByProviderId = new Map<string, string>()
  #violation: Violation | undefined
  #checks = 0
  #launches = 0
  /** Called at the first violation. */
  onViolation: () => void = () => undefined

  constructor(
    world: World,
    log: EventLog,
    {
      story,
      weather,
      cloud,
      lies,
      views,
    }: {
      readonly story: Story
      readonly weather: Weather
      readonly cloud: WorldCloud
      readonly lies: LyingCloud
      readonly views: ViewFaults
    },
  ) {
    this.#world = world
    this.#cloud = cloud
    this.#lies = lies
    this.#views = views
    this.#story = story
    this.#weather = weather
    this.#clock = world.clock
    this.#log = log
    const scene = this.#scene()
    this.#rules = [...invariants, ...invariantsOf[cloudOfStory(story)]].map((invariant) => invariant(scene))
  }

  get violation(): Violation | undefined {
    return this.#violation
  }

  /** Number of invariant checks so far. */
  get checks(): number {
    return this.#checks
  }

  /** Instances that controllers have requested. */
  get launches(): number {
    return this.#launches
  }

  /** Starts to follow the objects of the API server. */
  start(): void {
    const { local } = this.#world.cluster.server
    local.subscribe(
      kinds.pod,
      this.#handler('pods', (now, before) => this.#followPod(now, before), 'pod'),
    )
    local.subscribe(
      kinds.node,
      this.#handler('nodes', (now, before) => this.#followNode(now, before), 'node'),
    )
    local.subscribe(
      karpenterKinds.nodeClaim,
      this.#handler('nodeclaims', (now, before) => this.#followClaim(now, before), 'claim'),
    )
    local.subscribe(
      karpenterKinds.nodePool,
      this.#handler('nodepools', () => undefined, 'pool'),
    )
    const { objects } = this.#cloud
    if (objects !== undefined)
      local.subscribe(
        objects,
        this.#handler(objects.plural, () => undefined, 'cloudObject'),
      )
    this.#everyMinute()
  }

  /** Reports a violation; only the first one counts. */
  violate(invariant: string, text: string): void {
    if (this.#violation !== undefined) return
    this.#violation = { invariant, text, atMs: this.#clock.monotonic() }
    this.#log.record('violation', `${invariant}: ${text}`)
    this.onViolation()
  }

  /** Wraps the connection to the API server, behind all faults. */
  watchingApi(inner: Transport, process: OperatorProcess): Transport {
    return {
      send: async (request, signal) => {
        if (request.method === 'GET') {
          if (this.#listenersOf('apiRead').length === 0) return await inner.send(request, signal)
          return await this.#reading(inner, process, request, signal)
        }
        const write = apiWriteOf(process, request)
        const demand = this.#cloud.objects === undefined ? undefined : this.#cloud.demandOf(request)
        if (demand !== undefined) this.#notify('cloudWrite', { process, request, demand })
        this.#notify('apiWrite', write)
        const response = await inner.send(request, signal)
        if (demand?.launchFor !== undefined) this.#launches++
        this.#notify('apiWritten', write)
        if (demand !== undefined) this.#notify('cloudWritten')
        const { plural, name = '', subresource } = write
        const what = `${plural}/${name}${subresource === undefined ? '' : `/${subresource}`}`
        if (plural !== 'events' && plural !== 'leases')
          this.#log.record('api', `${process.name} ${request.method} ${what} ${response.status}`)
        return response
      },
    }
  }

  async #reading(
    inner: Transport,
    process: OperatorProcess,
    request: HttpRequest,
    signal: AbortSignal | undefined,
  ): Promise<Awaited<ReturnType<Transport['send']>>> {
    const response = await inner.send(request, signal)
    const { plural, name } = apiWriteOf(process, request)
    if (name !== undefined) this.#notify('apiRead', { process, plural, name, status: response.status })
    return response
  }

  /** Reads a line of a controller's log; lines about new claims name the pods they are for. */
  logged(line: string): void {
    if (!line.includes('"message":"created nodeclaim"')) return
    const { NodeClaim: claim, Pods: pods } = JSON.parse(line) as {
      readonly NodeClaim?: { readonly name?: string }
      readonly Pods?: string
    }
    if (claim?.name !== undefined && pods !== undefined)
      this.#notify('bought', claim.name, pods.replace(/ and \d+ other\(s\)$/, '').split(', '))
  }

  /** Called when a leader begins a clean shutdown, and when it has ended. */
  ends(process: OperatorProcess, step: 'ending' | 'ended'): void {
    this.#notify(step, process)
  }

  /** Wraps the connection to the cloud, behind all faults but the cloud's own. */
  watchingCloud(inner: Transport, process: OperatorProcess): Transport {
    return {
      send: async (request, signal) => {
        if (request.method === 'GET') return await inner.send(request, signal)
        const demand = this.#cloud.demandOf(request) ?? {}
        this.#notify('cloudWrite', { process, request, demand })
        const path = request.path.split('?')[0] ?? ''
        try {
          const response = await inner.send(request, signal)
          if (demand.launchFor !== undefined) this.#launches++
          this.#log.record('cloud', `${process.name} ${request.method} ${path} ${response.status}`)
          return response
        } finally {
          this.#notify('cloudWritten')
        }
      },
    }
  }

  #notify<K extends keyof Rule>(what: K, ...args: Parameters<NonNullable<Rule[K]>>): void {
    if (this.#violation !== undefined) return
    for (const listener of this.#listenersOf(what)) {
      this.#checks++
      listener(...args)
    }
  }

  #listenersOf(what: keyof Rule): readonly ((...detailOf: readonly unknown[]) => void)[] {
    let listeners = this.#listeners.get(what)
    if (listeners === undefined) {
      listeners = this.#rules.flatMap(
        (rule) => (rule[what] as (...detailOf: readonly unknown[]) => void) ?? [],
      )
      this.#listeners.set(what, listeners)
    }
    return listeners
  }

  #everyMinute(): void {
    this.#clock.after(minute, () => {
      this.#notify('minute')
      if (this.#violation === undefined) this.#everyMinute()
    })
  }

  #handler<T extends KubeObject>(
    plural: string,
    follow: (now: T | undefined, before: T | undefined) => void,
    kind: 'pod' | 'node' | 'claim' | 'pool' | 'cloudObject',
  ): {
    readonly added: (object: T) => void
    readonly updated: (object: T, old: T) => void
    readonly deleted: (object: T) => void
  } {
    const changed = (now: T | undefined, before: T | undefined): void => {
      const object = (now ?? before) as T
      const { name, uid, resourceVersion } = object.metadata
      const verb = now === undefined ? 'deleted' : before === undefined ? 'added' : 'updated'
      // Heartbeats would only fill the log.
      if (plural !== 'nodes' || verb !== 'updated' || isChange(now, before))
        this.#log.record(plural, `${verb} ${name} ${uid} ${resourceVersion}${detailOf(object)}`)
      follow(now, before)
      this.#notify(kind, now, before)
    }
    return {
      added: (object) => changed(object, undefined),
      updated: (object, old) => changed(object, old),
      deleted: (object) => changed(undefined, object),
    }
  }

  #followPod(now: Pod | undefined, before: Pod | undefined): void {
    const pod = now ?? before
    const uid = pod?.metadata.uid ?? ''
    const nodeName = now?.spec.nodeName
    if (before?.spec.nodeName !== undefined && before.spec.nodeName !== nodeName)
      this.#podsByNode.get(before.spec.nodeName)?.delete(uid)
    if (now === undefined) {
      this.#pods.delete(uid)
      this.#boundAt.delete(uid)
      return
    }
    this.#pods.set(uid, now)
    if (nodeName === undefined) return
    if (!this.#boundAt.has(uid)) this.#boundAt.set(uid, this.#clock.monotonic())
    const pods = this.#podsByNode.get(nodeName) ?? new Map<string, Pod>()
    pods.set(uid, now)
    this.#podsByNode.set(nodeName, pods)
  }

  #followNode(now: Node | undefined, before: Node | undefined): void {
    const providerId = (now ?? before)?.spec?.providerID
    if (providerId === undefined) return
    if (now !== undefined) this.#nodesByProviderId.set(providerId, now.metadata.name)
    else if (this.#nodesByProviderId.get(providerId) === before?.metadata.name)
      this.#nodesByProviderId.delete(providerId)
    if (now === undefined) this.#podsByNode.delete(before?.metadata.name ?? '')
  }

  #followClaim(now: NodeClaim | undefined, before: NodeClaim | undefined): void {
    const providerId = (now ?? before)?.status?.providerID
    if (providerId === undefined) return
    if (now !== undefined) this.#claimsByProviderId.set(providerId, now.metadata.name)
    else this.#claimsByProviderId.delete(providerId)
  }

  #scene(): Scene {
    const { local } = this.#world.cluster.server
    const nodeByName = (name: string): Node | undefined => local.get(kinds.node, undefined, name)
    const claimByName = (name: string): NodeClaim | undefined =>
      local.get(karpenterKinds.nodeClaim, undefined, name)
    return {
      world: this.#world,
      cloud: this.#cloud,
      clock: this.#clock,
      blindMs: blindMsIn(this.#story),
      nodeMonitorGraceMs:
        paceOf(this.#story).cluster.controllers?.nodeMonitorGraceMs ?? Number.POSITIVE_INFINITY,
      viewsMayBeWrong: () => this.#views.mayBeWrong(),
      mayHaveTwo: (claim) => this.#lies.mayHaveTwo(claim),
      failedRequests: () =>
        apiFaultKinds.reduce((sum, kind) => sum + (this.#weather.struck().get(kind) ?? 0), 0),
      violate: (invariant, text) => {
        this.violate(invariant, text)
      },
      boundMs: ({ metadata }) => {
        const since = this.#boundAt.get(metadata.uid ?? '')
        return since === undefined ? 0 : this.#clock.monotonic() - since
      },
      podByKey: (key) => {
        const [namespace = '', name = ''] = key.split('/')
        return local.get(kinds.pod, namespace, name)
      },
      podsOn: (name) => [...(this.#podsByNode.get(name)?.values() ?? [])],
      claimByName,
      claimByProviderId: (id) => {
        const name = this.#claimsByProviderId.get(id)
        return name === undefined ? undefined : claimByName(name)
      },
      nodeByName,
      nodeByProviderId: (id) => {
        const name = this.#nodesByProviderId.get(id)
        return name === undefined ? undefined : nodeByName(name)
      },
    }
  }
}

function apiWriteOf(process: OperatorProcess, request: HttpRequest): ApiWrite {
  const { method, path } = request
  const parts = (path.split('?')[0] ?? '').split('/').slice(1)
  const rest = parts.slice(parts[0] === 'api' ? 2 : 3)
  const isScoped = rest[0] === 'namespaces' && rest.length > 2
  const [plural = '', name, subresource] = isScoped ? rest.slice(2) : rest
  return { process, method, plural, namespace: isScoped ? rest[1] : undefined, name, subresource, request }
}

/** The part of an object that the log contains besides its name. */
function detailOf(object: KubeObject): string {
  const { spec, status } = object as Pod
  return spec?.nodeName === undefined ? '' : ` on ${spec.nodeName} ${status?.phase ?? ''}`
}

function isChange(now: Node | undefined, before: Node | undefined): boolean {
  return now?.spec !== before?.spec || now?.metadata.deletionTimestamp !== before?.metadata.deletionTimestamp
}
