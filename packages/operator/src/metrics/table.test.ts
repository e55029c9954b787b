/** The table, the registry and the reference page say the same. */
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { clusterRows } from './cluster/cluster-rows.ts'
import { coreRows } from './core-rows.ts'
import { Metrics, metricTable } from './metrics.ts'
import { nodeLabelNames } from './cluster/cluster-metrics.ts'
import type { MetricRow } from './rows.ts'

const page = readFileSync(new URL('../../../../docs/metrics.md', import.meta.url), 'utf8')

interface Registered {
  readonly name: string
  readonly help: string
  readonly type: string
  readonly labelNames: readonly string[]
  readonly upperBounds?: readonly number[]
  readonly percentiles?: readonly number[]
}

function registered(detail: 'full' | 'reduced' | 'none' = 'full') {
  const cluster = detail === 'none' ? undefined : { detail, providerLabels: [] }
  const metrics = new Metrics({ clock: new VirtualClock(), ...(cluster && { cluster }) })
  const families: readonly object[] = metrics.registry.getMetricsAsArray()
  return families as readonly Registered[]
}

/** Of what the operator itself counts; the families of controllers and conditions have tests of their own. */
const ownRows = [...coreRows, ...clusterRows]

/** A row as the page shows it. */
function line({ name, type, labels, hasNodeLabels, unit, help, grows }: MetricRow): string {
  const names = [...labels.map((label) => `\`${label}\``), ...(hasNodeLabels ? ['labels of nodes'] : [])]
  return `| \`${name}\` | ${type} | ${names.join(', ')} | ${unit} | ${help}${grows ? ` (grows ${grows})` : ''} |`
}

describe('metrics', () => {
  test('the registry has the families of the table, each as described there', () => {
    const found = registered()
    assert.deepEqual(found.map(({ name }) => name).toSorted(), ownRows.map(({ name }) => name).toSorted())
    for (const row of ownRows) {
      const family = found.find(({ name }) => name === row.name)
      const labels = [...row.labels, ...(row.hasNodeLabels ? nodeLabelNames([]) : [])]
      assert.deepEqual(
        [family?.type, family?.help, family?.labelNames, family?.upperBounds],
        [row.type, row.help, labels, row.buckets],
        row.name,
      )
      if (row.type === 'summary') assert.deepEqual(family?.percentiles, [0, 0.5, 0.9, 0.99, 1])
    }
  })

  test('the reference page has every row, and no other', () => {
    const shown = page.split('\n').filter((each) => each.startsWith('| `'))
    assert.deepEqual(shown.toSorted(), metricTable.map(line).toSorted())
  })

  test('with reduced detail nothing is left that grows with pods or nodes', () => {
    const rest = ownRows.filter(({ grows }) => grows === undefined).map(({ name }) => name)
    assert.deepEqual(
      registered('reduced')
        .map(({ name }) => name)
        .toSorted(),
      rest.toSorted(),
    )
  })

  test('only what is said to be there from the start is there', async () => {
    const { registry } = new Metrics({
      clock: new VirtualClock(),
      build: { version: '1.2.3', runtime: 'v24.1.0', arch: 'arm64', commit: 'abcdef0' },
      cluster: { detail: 'full', providerLabels: [] },
    })
    const lines = (await registry.metrics())
      .split('\n')
      .filter((each) => each !== '' && !each.startsWith('#'))
    assert.deepEqual(lines, [
      'karpenter_build_info{version="1.2.3",goversion="v24.1.0",goarch="arm64",commit="abcdef0"} 1',
      'karpenter_voluntary_disruption_consolidation_timeouts_total{consolidation_type="multi"} 0',
      'karpenter_voluntary_disruption_consolidation_timeouts_total{consolidation_type="single"} 0',
      ...['decision', 'disruption', 'improvement', 'explanation', 'zones'].map(
        (part) => `karpenter_scheduler_faults_total{part="${part}"} 0`,
      ),
    ])
  })

  test('labels of nodes are the ends of well-known keys, each once', () => {
    const core = [
      'nodepool',
      'zone',
      'region',
      'instance_type',
      'arch',
      'os',
      'capacity_type',
      'windows_build',
    ]
    assert.deepEqual(nodeLabelNames([]), ['node_name', 'phase', 'managed', ...core])
    const provider = [
      'cloud.example/instance-family',
      'other.example/zone',
      'plain',
      'a/b/c',
      'x.io/node_name',
    ]
    assert.deepEqual(nodeLabelNames(provider), ['node_name', 'phase', 'managed', ...core, 'instance_family'])
  })
})
