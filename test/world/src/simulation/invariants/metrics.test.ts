import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node, Pod } from '@tenon/api'
import { type Measured, MetricsWatch } from './metrics.ts'

/** What is said of these pages, one scrape each, with a pod `default/here` and a node `n1`. */
async function verdict(...pages: readonly string[]): Promise<string | undefined> {
  return await verdictOn({}, pages)
}

/** @param settings what the process was told to do. */
async function verdictOn(
  settings: Measured['settings'],
  pages: readonly (string | Error)[],
): Promise<string | undefined> {
  const said: string[] = []
  const pod = { metadata: { name: 'here', namespace: 'default' } } as Pod
  const node = { metadata: { name: 'n1' } } as Node
  const watch = new MetricsWatch({ pods: () => [pod], nodes: () => [node] }, (invariant) => {
    said.push(invariant)
  })
  let page: string | Error = ''
  const process: Measured = {
    name: 'karpenter-0',
    clock: { isPaused: false },
    settings,
    operator: {
      metrics: {
        registry: { metrics: () => (page instanceof Error ? Promise.reject(page) : Promise.resolve(page)) },
      },
    },
  }
  for (const each of pages) {
    page = each
    // Only some looks are scrapes.
    for (let i = 0; i < 10; i++) await watch.look([process])
  }
  return said[0]
}

const counter = (value: number) =>
  `# TYPE karpenter_things_total counter\nkarpenter_things_total{a="b"} ${value}\n`
const ofPod = (name: string) =>
  `# TYPE karpenter_pods_state gauge\nkarpenter_pods_state{name="${name}",namespace="default"} 1\n`

test('metrics as they should be break nothing', async () => {
  const page = `${counter(1)}${ofPod('here')}karpenter_nodes_allocatable{node_name="n1"} 4\nx_sum +Inf\n`
  assert.equal(await verdict(page, page.replace('} 1', '} 2')), undefined)
})

test('a counter that falls or goes is found', async () => {
  assert.equal(await verdict(counter(2), counter(1)), 'countersRise')
  assert.equal(await verdict(counter(2), ''), 'countersRise')
})

test('series of a pod or node that is gone are found when they stay', async () => {
  assert.equal(await verdict(ofPod('gone'), ofPod('gone')), 'noSeriesOfWhatIsGone')
  assert.equal(await verdict(ofPod('gone'), ofPod('here')), undefined)
})

test('a comma in a label value and what is not a number are found', async () => {
  assert.equal(await verdict('x{reason="a, b"} 1\n'), 'metricsReadable')
  assert.equal(await verdict('x{reason="a"} NaN\n'), 'metricsReadable')
})

test('a scrape that fails is found', async () => {
  assert.equal(await verdictOn({}, [new Error('no such series')]), 'metricsAnswer')
})

test('series of single pods are found where the options want none', async () => {
  assert.equal(await verdictOn({ metricsDetail: 'reduced' }, [ofPod('here')]), 'optionsObeyed')
  assert.equal(await verdictOn({ clusterStateObservability: false }, [ofPod('here')]), 'optionsObeyed')
  assert.equal(await verdictOn({ metricsDetail: 'full' }, [ofPod('here')]), undefined)
})
