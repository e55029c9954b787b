/** Node groups on the embedded API server, with or without the simulated Cluster API, on virtual time. */
import assert from 'node:assert/strict'
import { apiVersionOf, type KubeObject, type Node, type ResourceType } from '@tenon/api'
import { createCredentials, type LocalApi, startDevCluster } from '@tenon/devcluster'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { type AccessRight, createKubeClient, type WatchingKubeClient } from '@tenon/kube'
import type { NodeGroupDependencies, NodeGroupPreflightDependencies, NodeGroups } from '@tenon/provider'
import {
  type HttpHandler,
  type HttpRequest,
  type HttpResponse,
  JsonLogger,
  oneChunk,
  SeededRandom,
  silentLogger,
  VirtualClock,
} from '@tenon/runtime'
import { clusterApiSimulator } from '@tenon/simulator-cluster-api'
import { defaultGroup, fixedNames, namesOf } from '../names.ts'
import { type HubKinds, kindsOf, type Machine, type MachineSet, type ServedVersion } from '../objects.ts'
import { nodeGroupModule } from './open.ts'
import type { GroupKind, Scalable } from './scalable.ts'

export const names: ReturnType<typeof namesOf> = namesOf(defaultGroup)
export const cpuAndMemory = {
  'capacity.cluster-autoscaler.kubernetes.io/cpu': '4',
  'capacity.cluster-autoscaler.kubernetes.io/memory': '16Gi',
} as const

const crdType: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

/** What a request is answered with instead: a status, or no response at all. */
export type Fault = (request: HttpRequest) => number | 'break' | 'breakAfter' | undefined

export interface StageOptions {
  readonly specs?: readonly string[]
  readonly env?: Readonly<Record<string, string>>
  readonly group?: string
  readonly versions?: readonly ServedVersion[]
  /** Kinds that the hub does not serve, by plural. */
  readonly notServed?: readonly string[]
  readonly anyPoolVictim?: boolean
  /** Lets the simulated Cluster API act on MachineDeployments. */
  readonly isSimulated?: boolean
  readonly fault?: Fault
}

interface ResourceParts {
  readonly kind?: GroupKind
  readonly namespace?: string
  readonly min?: string
  readonly max?: string
  readonly replicas?: number
  readonly cluster?: string
  readonly labels?: Readonly<Record<string, string>>
  readonly annotations?: Readonly<Record<string, string>>
  readonly spec?: object
  readonly owner?: { readonly kind: string; readonly name: string }
}

interface MachineParts {
  /** Name of its MachineSet, or with `ownerKind` of another owner. */
  readonly set: string
  readonly ownerKind?: string
  readonly deployment?: string
  readonly namespace?: string
  readonly cluster?: string
  readonly providerID?: string
  readonly node?: string
  readonly phase?: string
  readonly annotations?: Readonly<Record<string, string>>
  readonly finalizers?: readonly string[]
  readonly status?: object
}

export class GroupsStage {
  readonly clock: VirtualClock
  readonly api: LocalApi
  /** The same with another field manager. */
  readonly apiAs: (user: string) => LocalApi
  readonly kinds: HubKinds
  /** `METHOD path`, without queries. */
  readonly requests: string[] = []
  readonly log: string[] = []
  fault: Fault
  groups: NodeGroups
  #end = new AbortController()
  readonly #handle: HttpHandler
  readonly #options: StageOptions
  readonly #stop: () => void

  private constructor(
    clock: VirtualClock,
    parts: {
      readonly api: LocalApi
      readonly handle: HttpHandler
      readonly localAs: (user: string) => LocalApi
      readonly stop: () => void
    },
    options: StageOptions,
  ) {
    const { group = defaultGroup, versions = ['v1beta2'] } = options
    this.clock = clock
    this.api = parts.api
    this.#handle = parts.handle
    this.#stop = parts.stop
    this.apiAs = parts.localAs
    this.#options = options
    this.kinds = kindsOf(group, versions[0] ?? 'v1beta2')
    this.fault = options.fault ?? (() => undefined)
    this.groups = this.#open()
  }

  /** A hub with CRDs, and nothing else. The module is opened, but not started. */
  static async create(options: StageOptions = {}): Promise<GroupsStage> {
    const clock = new VirtualClock()
    const { group = defaultGroup, versions = ['v1beta2'], notServed = [] } = options
    if (options.isSimulated === true) {
      const exactly = (ms: number) => ({ minMs: ms, maxMs: ms })
      const credentials = await createCredentials(clock.now())
      const settings = {
        deploymentDelay: exactly(100),
        controllerDelay: exactly(100),
        bootstrapDelay: exactly(1_000),
        providerIdDelay: exactly(10_000),
        nodeDelay: exactly(30_000),
        deletionDelay: exactly(5_000),
      }
      const cluster = startDevCluster({
        clock,
        random: new SeededRandom(1),
        logger: silentLogger,
        credentials,
        simulator: clusterApiSimulator({ settings }),
        kubelets: { readyDelay: [2_000, 2_000] },
      })
      const authorization = `Bearer ${credentials.adminToken.reveal()}`
      return new GroupsStage(
        clock,
        {
          api: cluster.server.localAs('kubectl'),
          localAs: (user) => cluster.server.localAs(user),
          handle: (request, signal) =>
            cluster.server.handle({ ...request, headers: { ...request.headers, authorization } }, signal),
          stop: () => {
            cluster.stop()
          },
        },
        options,
      )
    }
    const server = createTestApiServer({ clock })
    const api = server.localAs('kubectl')
    const kinds = Object.values(kindsOf(group, 'v1beta2'))
    for (const type of kinds) if (!notServed.includes(type.plural)) api.create(crdType, crdOf(type, versions))
    for (const name of ['a', 'a-b', 'b', 'b-c', 'c'])
      api.create(
        { group: '', version: 'v1', kind: 'Namespace', plural: 'namespaces', namespaced: false },
        { apiVersion: 'v1', kind: 'Namespace', metadata: { name } },
      )
    return new GroupsStage(
      clock,
      {
        api,
        localAs: (user) => server.localAs(user),
        handle: (request, signal) =>
          server.handle(
            { ...request, headers: { ...request.headers, authorization: 'Bearer admin' } },
            signal,
          ),
        stop: () => {
          server.stop()
        },
      },
      options,
    )
  }

  get signal(): AbortSignal {
    return this.#end.signal
  }

  async start(): Promise<this> {
    await this.run(this.groups.start?.(this.signal) ?? Promise.resolve())
    await this.refresh()
    return this
  }

  async refresh(): Promise<ReturnType<NodeGroups['refresh']> extends Promise<infer T> ? T : never> {
    await this.clock.advance(1_000)
    return await this.run(this.groups.refresh(this.signal))
  }

  /** Another process: what this one knew in memory is lost. */
  async restart(): Promise<void> {
    this.#end.abort()
    this.#end = new AbortController()
    this.groups = this.#open()
    await this.start()
  }

  stop(): void {
    this.#end.abort()
    this.#stop()
  }

  /** Advances time until the promise settles. */
  async run<T>(work: Promise<T>, limitMs = 1_800_000): Promise<T> {
    let isSettled = false
    const settle = () => {
      isSettled = true
    }
    work.then(settle, settle)
    await this.clock.advanceUntil(() => isSettled, limitMs)
    assert.ok(isSettled, 'it does not settle')
    return await work
  }

  /** The message of a rejection. */
  async refused(work: Promise<unknown>): Promise<string> {
    try {
      await this.run(work)
    } catch (error) {
      if (error instanceof Error) return error.message
    }
    return assert.fail('it was not refused')
  }

  ids(): readonly string[] {
    return this.groups
      .list()
      .map(({ id }) => id)
      .toSorted()
  }

  put(name: string, parts: ResourceParts = {}): Scalable {
    const { kind = 'MachineDeployment', namespace = 'a', min, max, replicas, cluster = 'c1' } = parts
    const type = this.typeOf(kind)
    const { group } = type
    const own = namesOf(group)
    return this.api.create(type, {
      apiVersion: apiVersionOf(type),
      kind,
      metadata: {
        name,
        namespace,
        ...(parts.labels && { labels: parts.labels }),
        annotations: {
          ...(min !== undefined && { [own.minSize]: min }),
          ...(max !== undefined && { [own.maxSize]: max }),
          ...parts.annotations,
        },
        ...(parts.owner && {
          ownerReferences: [{ apiVersion: apiVersionOf(type), uid: 'uid', controller: true, ...parts.owner }],
        }),
      },
      spec: { clusterName: cluster, ...(replicas !== undefined && { replicas }), ...parts.spec },
    })
  }

  /** A MachineSet of a MachineDeployment. */
  putSet(
    name: string,
    deployment: string,
    parts: ResourceParts & { readonly revision?: string } = {},
  ): MachineSet {
    const { revision = '1' } = parts
    return this.put(name, {
      replicas: 1,
      ...parts,
      kind: 'MachineSet',
      labels: { [fixedNames.deploymentName]: deployment },
      annotations: { [fixedNames.revision]: revision },
      owner: { kind: 'MachineDeployment', name: deployment },
    })
  }

  putMachine(name: string, parts: MachineParts): Machine {
    const {
      set,
      ownerKind = 'MachineSet',
      deployment,
      namespace = 'a',
      cluster = 'c1',
      phase = 'Running',
    } = parts
    const { machine } = this.kinds
    const created = this.api.create(machine, {
      apiVersion: apiVersionOf(machine),
      kind: 'Machine',
      metadata: {
        name,
        namespace,
        ...(deployment !== undefined && { labels: { [fixedNames.deploymentName]: deployment } }),
        ...(parts.annotations && { annotations: parts.annotations }),
        ...(parts.finalizers && { finalizers: parts.finalizers }),
        ownerReferences: [
          { apiVersion: apiVersionOf(machine), kind: ownerKind, name: set, uid: 'uid', controller: true },
        ],
      },
      spec: { clusterName: cluster, ...(parts.providerID !== undefined && { providerID: parts.providerID }) },
    })
    const { node } = parts
    const status = { phase, ...(node !== undefined && { nodeRef: { name: node } }), ...parts.status }
    return this.api.patch(machine, namespace, created.metadata.name, { status }, 'status')
  }

  /** A MachineDeployment with one MachineSet `NAME-1`, and a running Machine of each given name. */
  putGroup(name: string, machines: readonly string[], parts: ResourceParts = {}): void {
    this.put(name, { min: '0', max: '10', replicas: machines.length, ...parts })
    this.putSet(`${name}-1`, name, {
      replicas: machines.length,
      ...(parts.cluster && { cluster: parts.cluster }),
    })
    for (const machine of machines)
      this.putMachine(machine, {
        set: `${name}-1`,
        deployment: name,
        providerID: `aws:///z/${machine}`,
        node: machine,
        ...(parts.cluster && { cluster: parts.cluster }),
      })
  }

  typeOf(kind: GroupKind): ResourceType<Scalable> {
    const { machineDeployment, machineSet, machinePool } = this.kinds
    return { MachineDeployment: machineDeployment, MachineSet: machineSet, MachinePool: machinePool }[kind]
  }

  replicas(name: string, kind: GroupKind = 'MachineDeployment', namespace = 'a'): number | undefined {
    return this.api.get(this.typeOf(kind), namespace, name)?.spec?.replicas
  }

  /** A user writes the replicas. */
  scale(name: string, replicas: number, manager?: LocalApi): void {
    const api = manager ?? this.api
    api.patch(this.kinds.machineDeployment, 'a', name, { spec: { replicas } })
  }

  machine(name: string, namespace = 'a'): Machine | undefined {
    return this.api.get(this.kinds.machine, namespace, name)
  }

  /** Names of Machines that are marked for deletion. */
  marked(namespace = 'a'): readonly string[] {
    return this.api
      .list(this.kinds.machine, { namespace })
      .filter(({ metadata }) => metadata.annotations?.[names.deleteMachine] !== undefined)
      .map(({ metadata }) => metadata.name)
  }

  mark(name: string, value: string, namespace = 'a'): void {
    this.api.patch(this.kinds.machine, namespace, name, {
      metadata: { annotations: { [names.deleteMachine]: value } },
    })
  }

  /** Requests since the last call that are no reads of whole kinds by caches. */
  writes(): readonly string[] {
    return this.requests.splice(0).filter((each) => !each.startsWith('GET '))
  }

  /** What `tenon preflight` and `tenon init` look with; by default everything is allowed. */
  looking(isAllowed: (right: AccessRight) => boolean = () => true): NodeGroupPreflightDependencies {
    const { specs = [], env = {} } = this.#options
    const cluster = {
      client: this.#client(),
      server: 'https://hub.example',
      who: 'the autoscaler',
      isAllowed: (right: AccessRight) => Promise.resolve(isAllowed(right)),
    }
    return {
      env,
      clusters: { workload: cluster, management: cluster },
      discoverySpecs: specs,
      nodeGroupSpecs: [],
      allowsEmptyGroups: false,
      runtime: { clock: this.clock, random: new SeededRandom('look'), logger: silentLogger },
      userAgent: 'tenon-groups',
    }
  }

  #open(): NodeGroups {
    const { specs = [], env = {}, anyPoolVictim = false } = this.#options
    const random = new SeededRandom('groups')
    const logger = new JsonLogger(this.clock, (line) => void this.log.push(line), { value: 'info' })
    const cluster = { client: this.#client(), server: 'https://hub.example' }
    const dependencies: NodeGroupDependencies = {
      env,
      clusters: { workload: cluster, management: cluster },
      discoverySpecs: specs,
      nodeGroupSpecs: [],
      allowsEmptyGroups: true,
      anyMachinePoolVictim: anyPoolVictim,
      cloud: { fenced: (transport) => transport, userAgent: 'tenon-groups' },
      runtime: { clock: this.clock, random, logger },
    }
    return nodeGroupModule.open(dependencies)
  }

  #client(): WatchingKubeClient {
    const end = this.#end.signal
    return createKubeClient({
      transport: {
        send: (request, signal) => {
          // A process that has ended sends nothing more.
          if (end.aborted) return Promise.reject(new Error('the process has ended'))
          return this.#send(request, signal)
        },
      },
      clock: this.clock,
      userAgent: 'tenon-groups',
    })
  }

  async #send(request: HttpRequest, signal?: AbortSignal): Promise<HttpResponse> {
    this.requests.push(`${request.method} ${request.path}`)
    const fault = this.fault(request)
    if (fault === 'break') throw new Error('connect ECONNREFUSED')
    if (typeof fault === 'number') {
      const status = {
        apiVersion: 'v1',
        kind: 'Status',
        status: 'Failure',
        code: fault,
        reason:
          { 401: 'Unauthorized', 403: 'Forbidden', 404: 'NotFound', 409: 'Conflict' }[fault] ??
          'InternalError',
        message: `refused: ${request.method} ${request.path}`,
      }
      return {
        status: fault,
        headers: { 'content-type': 'application/json' },
        body: oneChunk(JSON.stringify(status)),
      }
    }
    const answer = await this.#handle(request, signal)
    if (fault === 'breakAfter') throw new Error('socket hang up')
    return answer
  }
}

function crdOf(type: ResourceType, versions: readonly ServedVersion[]): KubeObject {
  const { group, kind, plural } = type
  const hasScale = plural.startsWith('machinedeployments') || plural !== 'machines'
  const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const
  const crd: KubeObject & { readonly spec: object } = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${group}` },
    spec: {
      group,
      scope: 'Namespaced',
      names: { kind, listKind: `${kind}List`, plural, singular: kind.toLowerCase() },
      versions: versions.map((name, at) => ({
        name,
        served: true,
        storage: at === 0,
        subresources: {
          status: {},
          ...(hasScale && {
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          }),
        },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              apiVersion: { type: 'string' },
              kind: { type: 'string' },
              metadata: { type: 'object' },
              spec: anything,
              status: anything,
            },
          },
        },
      })),
    },
  }
  return crd
}

/** A Node of the workload. */
export function aNode(
  name: string,
  {
    providerID,
    machine,
    cluster,
    namespace = 'a',
  }: {
    readonly providerID?: string
    readonly machine?: string
    readonly cluster?: string
    readonly namespace?: string
  } = {},
): Node {
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      annotations: {
        ...(machine !== undefined && { [names.machine]: machine }),
        ...((machine ?? cluster) !== undefined && { [names.clusterNamespace]: namespace }),
        ...(cluster !== undefined && { [names.clusterName]: cluster }),
      },
    },
    spec: providerID === undefined ? {} : { providerID },
  }
}
