import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import { karpenterKinds, kinds, labels, type Node, type Pod, type ResourceType } from '@tenon/api'
import {
  Recorder,
  type RecorderOptions,
  type Recording,
  recordingOf,
  Redactor,
  type TraceRecord,
  type TraceState,
  traceStateAfter,
} from '@tenon/ask'
import { replay } from '@tenon/ask/play'
import { createKubeClient } from '@tenon/kube'
import { defaultSettings, type Settings } from '@tenon/operator'
import { defaultCatalogue, kwokNodeClassKind } from '@tenon/provider-kwok'
import { DocumentStream, SeededRandom, silentLogger, type Transport } from '@tenon/runtime'
import { aDeployment, aKwokPool, deploymentKind, World } from '../world.ts'

const minuteMs = 60_000
const daemonSetKind: ResourceType = {
  group: 'apps',
  version: 'v1',
  kind: 'DaemonSet',
  plural: 'daemonsets',
  namespaced: true,
}
/** As the world plays nodes and pods, on average. */
const times = { bootMs: 0, nodeReadyMs: 3_500, podStartMs: 1_200, podStopMs: 850 }

/** A world of small nodes with two Deployments, and the records of whoever records it. */
class RecordedWorld {
  readonly world: World
  readonly records: TraceRecord[] = []

  private constructor(world: World) {
    this.world = world
  }

  static async open(t: TestContext, settings: Partial<Settings> = {}): Promise<RecordedWorld> {
    const world = await World.start({
      seed: 1,
      provider: 'kwok',
      settings,
      turns: 1,
      cluster: { gitVersion: 'v1.36.0' },
    })
    t.after(() => world.stop())
    world.create(kwokNodeClassKind, {
      apiVersion: 'karpenter.kwok.sh/v1alpha1',
      kind: 'KWOKNodeClass',
      metadata: { name: 'default' },
      spec: {},
    })
    const pool = aKwokPool('default', {
      disruption: { consolidateAfter: '30s', budgets: [{ nodes: '100%' }] },
    })
    const { template } = pool.spec
    const few = [
      { key: 'karpenter.kwok.sh/instance-cpu', operator: 'In', values: ['2', '4', '8'] },
      { key: 'karpenter.kwok.sh/instance-family', operator: 'In', values: ['c'] },
    ] as const
    const spec = { ...template.spec, requirements: [...template.spec.requirements, ...few] }
    world.create(karpenterKinds.nodePool, {
      ...pool,
      spec: { ...pool.spec, template: { ...template, spec } },
    })
    await world.startOperator()
    world.create(deploymentKind, aDeployment('web', 30, { cpu: '900m', memory: '500Mi' }))
    world.create(deploymentKind, aDeployment('api', 15, { cpu: '1500m', memory: '1Gi' }))
    await world.clock.advance(3 * minuteMs)
    return new RecordedWorld(world)
  }

  async recorder(
    resume?: TraceState,
    path: (inner: Transport) => Transport = (inner) => inner,
    more: Partial<RecorderOptions> & { readonly records?: TraceRecord[] } = {},
  ): Promise<Recorder> {
    const { records = this.records, ...options } = more
    const { clock } = this.world
    const transport = path(this.world.kubeTransport())
    const client = createKubeClient({ transport, clock, userAgent: 'tenon/record' })
    const sink = {
      write: (record: TraceRecord) => {
        records.push(record)
      },
      flush: () => Promise.resolve(),
    }
    const recorder = new Recorder(
      { client, clock, sink, random: new SeededRandom(1), logger: silentLogger },
      {
        program: 'tenon test',
        source: 'a world',
        catalogues: [{ nodePools: ['default'], instanceTypes: defaultCatalogue() }],
        priceOf: priceOfNode,
        ...(resume && { resume }),
        ...options,
      },
    )
    let isStarted = false
    const start = async (): Promise<void> => {
      await recorder.start()
      isStarted = true
    }
    const starting = start()
    await clock.advanceUntil(() => isStarted, minuteMs)
    await starting
    return recorder
  }

  async stop(recorder: Recorder): Promise<void> {
    const stopping = recorder.stop()
    await this.world.clock.advance(1000)
    await stopping
  }

  recording(records: readonly TraceRecord[] = this.records): Recording {
    const recording = recordingOf(records)
    if ('message' in recording) throw new Error(recording.message)
    return recording
  }
}

/** What a world pays, added up from its own nodes and the catalogue; nothing of a recording or a play has part in it. */
class OwnBill {
  readonly #world: World
  readonly #price = new Map<string, number>()
  #atMs: number
  cost = 0

  constructor(world: World) {
    this.#world = world
    this.#atMs = world.clock.now()
    const types = new Map(defaultCatalogue().map((type) => [type.name, type]))
    world.cluster.server.local.subscribe<Node>(kinds.node, {
      added: ({ metadata }) => {
        this.advance()
        const own = metadata.labels ?? {}
        const offering = types
          .get(own[labels.instanceType] ?? '')
          ?.offerings.find(({ requirements }) =>
            requirements.every(({ key, values = [] }) => values.includes(own[key] ?? '')),
          )
        this.#price.set(metadata.name, offering?.pricePerHour ?? Number.NaN)
      },
      deleted: ({ metadata }) => {
        this.advance()
        this.#price.delete(metadata.name)
      },
    })
  }

  /** Adds up to now. */
  advance(): void {
    const hours = (this.#world.clock.now() - this.#atMs) / (60 * minuteMs)
    for (const price of this.#price.values()) this.cost += price * hours
    this.#atMs = this.#world.clock.now()
  }
}

function priceOfNode({ metadata }: Node): number | undefined {
  const text = metadata.labels?.['eks-node-viewer/instance-price']
  return text === undefined ? undefined : Number(text)
}

/** Every watch ends after its third row of events. */
function cutting(inner: Transport): Transport {
  return {
    send: async (request, signal) => {
      const response = await inner.send(request, signal)
      const { body } = response
      if (!(body instanceof DocumentStream)) return response
      return { ...response, body: body.through(firstThree) }
    },
  }
}

async function* firstThree<D>(rows: AsyncIterable<readonly D[]>): AsyncGenerator<readonly D[]> {
  let count = 0
  for await (const row of rows) {
    yield row
    if (++count === 3) return
  }
}

test('EXP-16 cut watches and a restart: each change of a workload is there once, and the gap is named', async (t) => {
  const recorded = await RecordedWorld.open(t)
  const { world, records } = recorded
  const created = new Set<string>()
  world.cluster.server.local.subscribe<Pod>(kinds.pod, {
    added: ({ metadata }) => created.add(metadata.uid ?? ''),
  })
  const first = await recorded.recorder(undefined, cutting)
  world.scale('web', 50)
  await world.clock.advance(4 * minuteMs)
  world.scale('web', 20)
  await world.clock.advance(6 * minuteMs)
  await recorded.stop(first)
  const stoppedMs = world.clock.now()
  const came = records.filter(({ kind }) => kind === 'podCame').length
  const moved = records.filter(({ kind }) => kind === 'podMoved').length
  assert.equal(came + moved, created.size)
  world.scale('api', 6)
  await world.clock.advance(2 * minuteMs)
  const second = await recorded.recorder(traceStateAfter(records), cutting)
  await world.clock.advance(5 * minuteMs)
  await recorded.stop(second)
  const numbers = records.flatMap((record) => (record.kind === 'podCame' ? [record.pod] : []))
  const endings = records.flatMap((record) => (record.kind === 'podEnded' ? [record.pod] : []))
  assert.equal(new Set(numbers).size, numbers.length)
  assert.equal(new Set(endings).size, endings.length)
  assert.equal(numbers.length - endings.length, world.pods().length)
  assert.equal(traceStateAfter(records).nodes.size, world.nodes().length)
  const [gap, ...more] = recorded.recording().gaps
  assert.deepEqual(more, [])
  assert.equal((gap?.fromMs ?? 0) <= stoppedMs && (gap?.toMs ?? 0) >= stoppedMs + 2 * minuteMs - 1000, true)
})

for (const compatibility of ['none', 'karpenter'] as const)
  test(`EXP-14 EXP-17 a replay of a world under the same rules (${compatibility}) costs what the world did, twice the same`, async (t) => {
    const recorded = await RecordedWorld.open(t, { compatibility })
    const { world } = recorded
    const recorder = await recorded.recorder()
    const own = new OwnBill(world)
    const replicas = [
      ['web', 60],
      ['api', 30],
      ['web', 25],
      ['api', 12],
      ['web', 45],
    ] as const
    for (const [name, count] of replicas) {
      await world.clock.advance(10 * minuteMs)
      world.scale(name, count)
    }
    await world.clock.advance(20 * minuteMs)
    await recorded.stop(recorder)
    own.advance()
    const recording = recorded.recording()
    const variant = { name: 'same', settings: { ...defaultSettings, compatibility }, times }
    const played = await replay(recording, variant)
    assert.equal(recording.figures.unpricedNodes, 0)
    for (const cost of [recording.figures.cost, own.cost]) {
      const ratio = played.report.cost / cost
      assert.equal(ratio > 0.97 && ratio < 1.03, true, `${played.report.cost} instead of ${cost}: ${ratio}`)
    }
    if (compatibility === 'none') assert.deepEqual(await replay(recording, variant), played)
  })

const daemonSet = {
  apiVersion: 'apps/v1',
  kind: 'DaemonSet',
  metadata: {
    name: 'secret-agent',
    namespace: 'default',
    annotations: { 'kubectl.kubernetes.io/last-applied-configuration': '{"env":"hush"}' },
  },
  spec: {
    selector: { matchLabels: { app: 'secret-agent' } },
    template: {
      metadata: { labels: { app: 'secret-agent' } },
      spec: {
        containers: [
          {
            name: 'agent',
            image: 'secret-image',
            env: [{ name: 'KEY', value: 'hush' }],
            resources: { requests: { cpu: '50m', memory: '64Mi' } },
          },
        ],
      },
    },
  },
} as const

test('EXP-16 a redacted recording has no names, goes on under the same key, and replays to the same price', async (t) => {
  const recorded = await RecordedWorld.open(t)
  const { world, records: plain } = recorded
  world.create(daemonSetKind, daemonSet)
  await world.clock.advance(minuteMs)
  const records: TraceRecord[] = []
  const ofTypes = ['size', 'family', 'cpu', 'memory'].map((part) => `karpenter.kwok.sh/instance-${part}`)
  const redactor = () => new Redactor(ofTypes, 'key')
  const beside = await recorded.recorder()
  const first = await recorded.recorder(undefined, undefined, { records, redactor: redactor() })
  world.scale('web', 50)
  await world.clock.advance(10 * minuteMs)
  await recorded.stop(first)
  const second = await recorded.recorder(traceStateAfter(records), undefined, {
    records,
    redactor: redactor(),
  })
  world.scale('web', 20)
  await world.clock.advance(15 * minuteMs)
  await recorded.stop(second)
  await recorded.stop(beside)
  assert.doesNotMatch(JSON.stringify(plain), /hush|secret-image/)
  const text = JSON.stringify(records)
  for (const { metadata } of [...world.nodes(), ...world.pods()])
    assert.ok(!text.includes(metadata.name), metadata.name)
  assert.doesNotMatch(text, /secret|hush|"(web|api|default)"|a world/)
  // Nodes of the first session are those of the second: none comes twice.
  const came = records.flatMap((record) => (record.kind === 'nodeCame' ? [record.id] : []))
  assert.equal(new Set(came).size, came.length)
  assert.equal(traceStateAfter(records).nodes.size, world.nodes().length)
  const costOf = async (of: readonly TraceRecord[]): Promise<number> => {
    const played = await replay(recorded.recording(of), { name: 'same', settings: defaultSettings, times })
    return played.report.cost
  }
  const ratio = (await costOf(records)) / (await costOf(plain))
  assert.ok(ratio > 0.97 && ratio < 1.03, String(ratio))
})
