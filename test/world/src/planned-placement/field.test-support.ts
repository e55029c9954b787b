/** Words for stories about pods that go where they were planned: the devcluster's scheduler places them. */
import { Readable } from 'node:stream'
import type { TestContext } from 'node:test'
import { karpenterKinds, kinds, labels, type Node, type NodeClaim, type Pod, type Taint } from '@tenon/api'
import type { Settings } from '@tenon/operator'
import { kwokNodeClassKind } from '@tenon/provider-kwok'
import { type LogFields, type Logger, rfc3339, type Transport } from '@tenon/runtime'
import { aKwokPool, type RunningOperator, World, type WorldOptions } from '../world.ts'

export const seconds = 1000
const forever = 1e12

export interface FieldOptions {
  readonly settings?: Partial<Settings>
  /** Version of the API server; one whose scheduler honours nominations unless given. */
  readonly gitVersion?: string
  /** How long after its launch a node appears. */
  readonly nodeRegistrationDelay?: string
  /** Most CPUs of a node, instead of 8 for each. */
  readonly mostCpu?: number
  readonly rate?: WorldOptions['rate']
  /** How long the API server takes for an answer. */
  readonly latencyMs?: number
}

/** A nomination, or its end, that the operator asked the API server for. */
export interface Nomination {
  readonly pod: string
  readonly node: string | null
  readonly atMs: number
}

interface Answer {
  readonly method: string
  readonly path: string
  readonly status: number
}

interface Line {
  readonly level: string
  readonly message: string
  readonly fields: LogFields
}

/** What happens to a request of the operator. */
export type Fate = 'pass' | 'forbidden' | 'error'

/** A cluster whose only NodePool launches nodes of 8 CPU with 2, 4 or 8 GiB each. */
export class Field {
  readonly world: World
  readonly nominations: readonly Nomination[]
  readonly lines: readonly Line[]
  /** What the API server answered to the operator's writes, in order. */
  readonly answers: readonly Answer[]
  /** Decides about requests; may be changed at any time. */
  fate: (method: string, path: string) => Fate | Promise<Fate> = () => 'pass'
  operator!: RunningOperator

  private constructor({
    world,
    nominations,
    lines,
    answers,
  }: Pick<Field, 'world' | 'nominations' | 'lines' | 'answers'>) {
    this.world = world
    this.nominations = nominations
    this.lines = lines
    this.answers = answers
  }

  /** The operator is started on its own. */
  static async open(t: TestContext, options: FieldOptions = {}): Promise<Field> {
    const { gitVersion = 'v1.36.3', settings, nodeRegistrationDelay = '0s', latencyMs = 0 } = options
    const nominations: Nomination[] = []
    const answers: Answer[] = []
    const lines: Line[] = []
    let field: Field | undefined
    const apiPath = (inner: Transport): Transport => ({
      send: async (request, signal) => {
        const fate = (await field?.fate(request.method, request.path)) ?? 'pass'
        if (fate !== 'pass') return refusal(fate)
        const pod = podOfStatusPatch(request.method, request.path)
        const node = pod === undefined ? undefined : nominatedNodeIn(request.body)
        if (pod !== undefined && node !== undefined)
          nominations.push({ pod, node, atMs: field?.world.clock.now() ?? 0 })
        if (latencyMs > 0) await field?.world.clock.sleep(latencyMs, signal)
        const response = await inner.send(request, signal)
        if (request.method !== 'GET')
          answers.push({ method: request.method, path: request.path, status: response.status })
        return response
      },
    })
    const world = await World.start({
      seed: 1,
      provider: 'kwok',
      // Nodes without a kubelet are left alone.
      cluster: { gitVersion, controllers: { nodeMonitorGraceMs: forever, nodeStartupGraceMs: forever } },
      logger: new LineLogger(lines),
      apiPath,
      ...(settings && { settings }),
      ...(options.rate && { rate: options.rate }),
    })
    field = new Field({ world, nominations, lines, answers })
    const nodeClass = { apiVersion: 'karpenter.kwok.sh/v1alpha1', kind: 'KWOKNodeClass' }
    world.create(kwokNodeClassKind, {
      ...nodeClass,
      metadata: { name: 'default' },
      spec: { nodeRegistrationDelay },
    })
    const pool = aKwokPool()
    const { spec } = pool.spec.template
    const { mostCpu } = options
    const sizes = {
      key: 'karpenter.kwok.sh/instance-cpu',
      ...(mostCpu === undefined
        ? ({ operator: 'In', values: ['8'] } as const)
        : ({ operator: 'Lt', values: [String(mostCpu + 1)] } as const)),
    }
    world.create(karpenterKinds.nodePool, {
      ...pool,
      spec: {
        ...pool.spec,
        disruption: { consolidateAfter: 'Never' },
        template: { spec: { ...spec, requirements: [...spec.requirements, sizes] } },
      },
    })
    const opened = field
    t.after(() => opened.#close())
    return opened
  }

  async start(): Promise<void> {
    this.operator = await this.world.startOperator()
  }

  /** The operator's process dies and another one starts. */
  async restart(): Promise<void> {
    await this.world.bury(this.operator)
    await this.start()
  }

  async pass(ms: number): Promise<void> {
    await this.world.clock.advance(ms)
  }

  /** Passes time until something holds, at most so long; answers whether it came to that. */
  async until(isDone: () => boolean, mostMs: number): Promise<boolean> {
    for (let ms = 0; ms < mostMs && !isDone(); ms += 50) await this.pass(50)
    return isDone()
  }

  /** Creates pods `NAME-0`, `NAME-1` and so on of one size. */
  pods(name: string, count: number, cpu: string, memory: string, spec: Partial<Pod['spec']> = {}): void {
    for (let i = 0; i < count; i++) {
      this.world.create(kinds.pod, {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: `${name}-${i}`, namespace: 'default', labels: { app: name } },
        spec: {
          containers: [
            { name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu, memory } } },
          ],
          ...spec,
        },
      })
    }
  }

  /** Eight pods that suit a `c` node of 2 GiB a core and eight that suit an `m` node of 8 GiB a core. */
  sixteen(): void {
    this.pods('small', 8, '900m', '1Gi')
    this.pods('large', 8, '900m', '7Gi')
  }

  /** Starts with the sixteen pods, and goes on until every launched claim is launched and no Node has come. */
  async launchSixteen(): Promise<void> {
    await this.start()
    this.sixteen()
    const isLaunched = () =>
      this.claims().length === 2 && this.claims().every(({ status }) => (status?.providerID ?? '') !== '')
    if (!(await this.until(isLaunched, 10 * seconds))) throw new Error('the two claims were not launched')
  }

  claims(): readonly NodeClaim[] {
    return this.world.claims()
  }

  nodes(): readonly Node[] {
    return this.world.nodes()
  }

  podNow(name: string): Pod | undefined {
    return this.world.cluster.server.local.get(kinds.pod, 'default', name)
  }

  get unbound(): readonly string[] {
    return this.world
      .pods()
      .filter(({ spec }) => (spec.nodeName ?? '') === '')
      .map(({ metadata }) => metadata.name)
  }

  get isAllBound(): boolean {
    return this.unbound.length === 0
  }

  /** How many pods of each app run on each family of nodes: `{ c: { small: 8 } }`. */
  get placement(): Readonly<Record<string, Readonly<Record<string, number>>>> {
    const families = new Map(
      this.nodes().map(({ metadata }) => [
        metadata.name,
        metadata.labels?.['karpenter.kwok.sh/instance-family'] ?? '?',
      ]),
    )
    const counts: Record<string, Record<string, number>> = {}
    for (const { metadata, spec } of this.world.pods()) {
      const family = families.get(spec.nodeName ?? '')
      if (family === undefined) continue
      const apps = (counts[family] ??= {})
      const app = metadata.labels?.['app'] ?? '?'
      apps[app] = (apps[app] ?? 0) + 1
    }
    return counts
  }

  /** A Node without an instance, as it stands there for good. */
  node(name: string, cpu: string, taints: readonly Taint[] = []): void {
    const amounts = { cpu, memory: '64Gi', pods: '110' }
    this.world.create(kinds.node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: { name, labels: { [labels.hostname]: name } },
      spec: { taints },
    })
    const at = rfc3339(this.world.clock.now())
    const ready = { type: 'Ready', status: 'True', reason: 'Kubelet', message: '' }
    const conditions = [{ ...ready, lastHeartbeatTime: at, lastTransitionTime: at }]
    const { local } = this.world.cluster.server
    local.patch(
      kinds.node,
      undefined,
      name,
      { status: { capacity: amounts, allocatable: amounts, conditions } },
      'status',
    )
  }

  nominate(pod: string, node: string | null): void {
    const status = { nominatedNodeName: node }
    this.world.cluster.server.local.patch(kinds.pod, 'default', pod, { status }, 'status')
  }

  /** As the scheduler does, whatever the node says. */
  bind(pod: string, nodeName: string): void {
    this.world.cluster.server.local.patch(kinds.pod, 'default', pod, { spec: { nodeName } })
  }

  nominatedNode(pod: string): string {
    return this.podNow(pod)?.status?.nominatedNodeName ?? ''
  }

  isRegistered(node: string): boolean {
    const found = this.nodes().find(({ metadata }) => metadata.name === node)
    return found?.metadata.labels?.[labels.registered] === 'true'
  }

  /** Lines of the operator's log that begin with these words. */
  said(words: string): readonly Line[] {
    return this.lines.filter(({ message }) => message.startsWith(words))
  }

  async metric(name: string, wanted: Readonly<Record<string, string>> = {}): Promise<number> {
    const { registry } = this.operator.operator.metrics
    const metric = registry.getSingleMetric(`karpenter_${name}`) ?? registry.getSingleMetric(name)
    const { values } = (await metric?.get()) ?? { values: [] }
    return values
      .filter((each) => Object.entries(wanted).every(([label, value]) => each.labels[label] === value))
      .reduce((total, each) => total + each.value, 0)
  }

  async #close(): Promise<void> {
    if (this.operator as RunningOperator | undefined) await this.world.bury(this.operator)
    await this.world.stop()
  }
}

class LineLogger implements Logger {
  readonly #lines: Line[]

  constructor(lines: Line[]) {
    this.#lines = lines
  }

  debug(message: string, fields: LogFields = {}): void {
    this.#lines.push({ level: 'debug', message, fields })
  }

  info(message: string, fields: LogFields = {}): void {
    this.#lines.push({ level: 'info', message, fields })
  }

  warn(message: string, fields: LogFields = {}): void {
    this.#lines.push({ level: 'warn', message, fields })
  }

  error(message: string, fields: LogFields = {}): void {
    this.#lines.push({ level: 'error', message, fields })
  }

  with(): Logger {
    return this
  }
}

function podOfStatusPatch(method: string, path: string): string | undefined {
  return method === 'PATCH' ? /\/namespaces\/default\/pods\/([^/]+)\/status$/.exec(path)?.[1] : undefined
}

function nominatedNodeIn(body: string | Uint8Array | undefined): string | null | undefined {
  const text = typeof body === 'string' ? body : new TextDecoder().decode(body)
  const operations = JSON.parse(text) as readonly { op: string; path: string; value?: string }[]
  const change = operations.find(({ op, path }) => op !== 'test' && path === '/status/nominatedNodeName')
  return change?.op === 'remove' ? null : change?.value
}

function refusal(fate: 'forbidden' | 'error') {
  const code = fate === 'forbidden' ? 403 : 500
  const reason = fate === 'forbidden' ? 'Forbidden' : 'InternalError'
  const message = 'refused by the test'
  const status = { apiVersion: 'v1', kind: 'Status', status: 'Failure', code, reason, message }
  const headers = { 'content-type': 'application/json' }
  return { status: code, headers, body: Readable.from([JSON.stringify(status)]) }
}
