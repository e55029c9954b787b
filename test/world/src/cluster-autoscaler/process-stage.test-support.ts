/** `tenon cluster-autoscaler` as its example manifest starts it, against the embedded API server and its rights. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import type { Node, Pod, TopologySpreadConstraint } from '@tenon/api'
import { type AutoscalerPlan, readOptions, runAutoscaler } from '@tenon/cluster-autoscaler'
import type { ApiServer } from '@tenon/devcluster'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import type { GroupOfNode, NodeGroup, NodeGroupModule, NodeGroups } from '@tenon/provider'
import {
  eventLoopTurns,
  type HttpHandler,
  readText,
  SeededRandom,
  silentLogger,
  type Transport,
  VirtualClock,
} from '@tenon/runtime'
import { parseAllDocuments } from 'yaml'
import { electorOver } from './elector.ts'

interface Manifest {
  readonly kind: string
  readonly metadata: { readonly name: string; readonly namespace?: string }
  /** Of a role. */
  readonly rules?: readonly { readonly resources: readonly string[] }[]
  readonly spec?: {
    readonly template: {
      readonly spec: { readonly containers: readonly { readonly command: readonly string[] }[] }
    }
  }
}

const examples = resolve(import.meta.dirname, '../../../../examples/cluster-autoscaler')

/** The documents of one of the example manifests. */
export function exampleManifests(file: string): readonly Manifest[] {
  return parseAllDocuments(readFileSync(resolve(examples, file), 'utf8')).map(
    (each) => each.toJS() as Manifest,
  )
}

/** The same without the rules about these resources. */
export function withoutRights(
  manifests: readonly Manifest[],
  ...resources: readonly string[]
): readonly Manifest[] {
  const isKept = ({ resources: granted }: { readonly resources: readonly string[] }) =>
    !granted.some((each) => resources.includes(each))
  return manifests.map((each) =>
    each.rules === undefined ? each : { ...each, rules: each.rules.filter(isKept) },
  )
}

/** The same with one more rule in their ClusterRole. */
export function withRights(
  manifests: readonly Manifest[],
  ...more: readonly (NonNullable<Manifest['rules']>[number] & {
    readonly apiGroups: readonly string[]
    readonly verbs: readonly string[]
  })[]
): readonly Manifest[] {
  return manifests.map((each) =>
    each.kind === 'ClusterRole' ? { ...each, rules: [...(each.rules ?? []), ...more] } : each,
  )
}

/** Where objects of the kinds that grant rights are made. */
const paths: Readonly<Record<string, string>> = {
  ServiceAccount: '/api/v1/namespaces/kube-system/serviceaccounts',
  ClusterRole: '/apis/rbac.authorization.k8s.io/v1/clusterroles',
  ClusterRoleBinding: '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings',
  Role: '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/roles',
  RoleBinding: '/apis/rbac.authorization.k8s.io/v1/namespaces/kube-system/rolebindings',
}

export const statusPath = '/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status'
export const leasePath = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/cluster-autoscaler'

interface Answer {
  readonly status: number
  // oxlint-disable-next-line typescript/no-explicit-any -- tests look at whatever the server said
  readonly body: any
}

/** A request of the autoscaler, and how it was answered. */
export interface Seen {
  readonly method: string
  readonly path: string
  readonly status: number
}

/** A running replica. */
export interface Replica {
  readonly ended: Promise<Error | undefined>
  end(): void
  /** From now on nothing of it reaches the API server. */
  cut(): void
  /** The same just before, or just after, the first request for which this is so reaches the API server. */
  cutAt(isIt: (request: Pick<Seen, 'method' | 'path'>) => boolean, when: 'before' | 'after'): void
  get(path: string): Promise<{ readonly status: number; readonly text: string }>
}

/** One node group, in which every node is. */
class OneGroup implements NodeGroups {
  group0: NodeGroup = { id: 'pool', name: 'workers', minSize: 1, maxSize: 5, targetSize: 0 }
  readonly changes: string[] = []
  nodes: readonly string[] = []
  /** Whether instances are listed that have no node yet. */
  showsStarting = false
  /** Called when the cloud has made the group larger. */
  grown: () => void = () => undefined

  async refresh(): Promise<readonly []> {
    return await Promise.resolve([])
  }

  list(): readonly NodeGroup[] {
    return [this.group0]
  }

  group(id: string): NodeGroup | undefined {
    return id === this.group0.id ? this.group0 : undefined
  }

  async groupOf(): Promise<GroupOfNode> {
    return await Promise.resolve({ kind: 'group', groupId: this.group0.id })
  }

  async instances() {
    const starting = this.showsStarting ? Math.max(0, this.group0.targetSize - this.nodes.length) : 0
    return await Promise.resolve([
      ...this.nodes.map((name) => ({ providerId: `cloud://${name}`, state: 'running' as const })),
      ...Array.from({ length: starting }, (_, at) => ({
        providerId: `cloud://new-${this.nodes.length + at}`,
        state: 'creating' as const,
      })),
    ])
  }

  async increaseSize(groupId: string, delta: number) {
    this.changes.push(`${groupId} +${delta}`)
    const targetSize = this.group0.targetSize + delta
    this.group0 = { ...this.group0, targetSize }
    this.grown()
    return await Promise.resolve({ targetSize, settled: Promise.resolve() })
  }

  async deleteInstances(groupId: string, providerIds: readonly string[]): Promise<void> {
    this.changes.push(`${groupId} -${providerIds.join()}`)
    this.group0 = { ...this.group0, targetSize: this.group0.targetSize - providerIds.length }
    this.nodes = this.nodes.filter((name) => !providerIds.includes(`cloud://${name}`))
    await Promise.resolve()
  }

  async decreaseTargetSize(): Promise<'unsupported'> {
    return await Promise.resolve('unsupported')
  }
}

export class ProcessStage {
  readonly clock = new VirtualClock()
  readonly cloud = new OneGroup()
  readonly seen: Seen[] = []
  readonly #server: ApiServer
  #token = ''
  #isStarted = false

  /** @param manifests of which the rights are granted. */
  static async open(
    manifests: readonly Manifest[] = exampleManifests('regular.yaml'),
  ): Promise<ProcessStage> {
    const stage = new ProcessStage()
    for (const manifest of manifests) {
      const path = paths[manifest.kind]
      if (path !== undefined) await stage.must('POST', path, manifest)
    }
    const { body } = await stage.must('POST', `${paths['ServiceAccount']}/cluster-autoscaler/token`, {
      spec: {},
    })
    stage.#token = (body as { readonly status: { readonly token: string } }).status.token
    return stage
  }

  private constructor() {
    this.#server = createTestApiServer({ clock: this.clock })
  }

  /** As the administrator. */
  async call(method: string, path: string, body?: unknown): Promise<Answer> {
    const headers = {
      authorization: 'Bearer admin',
      'content-type': 'application/json',
      accept: 'application/json',
    }
    const request = { method, path, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
    const answer = await this.#server.handle(request)
    return { status: answer.status, body: JSON.parse(await readText(answer.body)) }
  }

  async must(method: string, path: string, body?: unknown): Promise<Answer> {
    const answer = await this.call(method, path, body)
    if (answer.status >= 300) throw new Error(`${method} ${path}: ${JSON.stringify(answer.body)}`)
    return answer
  }

  /** Registered nodes of the group, ready and empty: for an hour, or from now on once a replica runs. */
  async addNodes(...names: readonly string[]): Promise<void> {
    const resources = { cpu: '4', memory: '8Gi', pods: '110' }
    for (const name of names) {
      await this.must('POST', '/api/v1/nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name, labels: { 'kubernetes.io/hostname': name } },
        spec: { providerID: `cloud://${name}` },
      })
      const since = new Date(this.clock.now() - (this.#isStarted ? 0 : 3_600_000)).toISOString()
      const conditions = [{ type: 'Ready', status: 'True' as const, lastTransitionTime: since }]
      // Admission gives it the taint of a node that is not ready.
      await this.#change(name, '', (node) => ({ ...node, spec: { ...node.spec, taints: [] } }))
      const status = { capacity: resources, allocatable: resources, conditions }
      await this.#change(name, '/status', (node) => ({ ...node, status }))
    }
    this.cloud.nodes = [...this.cloud.nodes, ...names]
    this.cloud.group0 = { ...this.cloud.group0, targetSize: this.cloud.nodes.length }
  }

  /** Pods by name, with the CPUs they ask for; without a node, the scheduler has found no place for them. */
  async addPods(cpus: Readonly<Record<string, string>>, nodeName?: string): Promise<void> {
    for (const [name, cpu] of Object.entries(cpus)) {
      const containers = [{ name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu } } }]
      const { body } = await this.must('POST', '/api/v1/namespaces/default/pods', {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name, namespace: 'default', labels: { tier: 'web' } },
        spec: { containers, ...(nodeName !== undefined && { nodeName }) },
      })
      if (nodeName !== undefined) continue
      const lastTransitionTime = new Date(this.clock.now()).toISOString()
      const conditions = [
        { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', lastTransitionTime },
      ]
      const path = `/api/v1/namespaces/default/pods/${name}/status`
      const pod = body as Pod
      await this.must('PUT', path, { ...pod, status: { ...pod.status, conditions } })
    }
  }

  async #change(name: string, part: string, change: (node: Node) => Node): Promise<void> {
    const { body } = await this.must('GET', `/api/v1/nodes/${name}`)
    await this.must('PUT', `/api/v1/nodes/${name}${part}`, change(body as Node))
  }

  /** Requests that were refused for want of a right. */
  refused(): readonly string[] {
    return this.seen.filter(({ status }) => status === 403).map(({ method, path }) => `${method} ${path}`)
  }

  /**
   * Starts one with the command of the manifest, and more arguments.
   * @param defaultConstraints as from the file of `--scheduler-config-file`.
   */
  start(
    identity: string,
    args: readonly string[] = [],
    defaultConstraints: readonly TopologySpreadConstraint[] = [],
  ): Replica {
    const command = exampleManifests('regular.yaml').find(({ kind }) => kind === 'Deployment')?.spec?.template
      .spec.containers[0]?.command
    const asked = readOptions([...(command ?? []).slice(1), ...args], ['exoscale'])
    if (asked.kind !== 'options') throw new Error('message' in asked ? asked.message : asked.kind)
    this.#isStarted = true
    let isCut = false
    let pages: HttpHandler | undefined
    let isLast: (request: Pick<Seen, 'method' | 'path'>) => boolean = () => false
    let cutWhen: 'before' | 'after' = 'after'
    const transport: Transport = {
      send: async (request, signal) => {
        const isFound = !isCut && isLast(request)
        if (isFound && cutWhen === 'before') isCut = true
        if (isCut) return await new Promise(() => undefined)
        const answer = this.#send(request, signal)
        if (!isFound) return await answer
        isCut = true
        await answer
        return await new Promise(() => undefined)
      },
    }
    const module: Pick<NodeGroupModule, 'open'> = { open: () => this.cloud }
    const candidate = {
      options: { ...asked.autoscaler, loop: { ...asked.autoscaler.loop, defaultConstraints } },
      process: asked.process,
      identity,
      clock: this.clock,
      random: new SeededRandom(identity),
      logger: silentLogger,
    }
    const plan: AutoscalerPlan = {
      ...candidate,
      ...electorOver(transport, candidate),
      warnings: asked.warnings,
      cloud: module,
      env: {},
      kubernetes: { transport, server: 'https://embedded' },
      serve: async (handler) => {
        pages = handler
        return await Promise.resolve({ port: 8085, url: '', close: () => Promise.resolve() })
      },
      userAgent: 'test',
      turns: eventLoopTurns,
    }
    const asking = new AbortController()
    const ended = runAutoscaler(plan, asking.signal).then(
      () => undefined,
      (error: unknown) => error as Error,
    )
    return {
      ended,
      end: () => {
        asking.abort(new Error('asked to end'))
      },
      cut: () => {
        isCut = true
      },
      cutAt: (isIt, when) => {
        isLast = isIt
        cutWhen = when
      },
      get: async (path) => {
        if (pages === undefined) throw new Error('nothing is served')
        const { status, body } = await pages({ method: 'GET', path, headers: {} })
        return { status, text: await readText(body) }
      },
    }
  }

  async #send(request: Parameters<Transport['send']>[0], signal?: AbortSignal) {
    const headers = { ...request.headers, authorization: `Bearer ${this.#token}` }
    const answer = await this.#server.handle({ ...request, headers }, signal)
    this.seen.push({ method: request.method, path: request.path, status: answer.status })
    return answer
  }
}
