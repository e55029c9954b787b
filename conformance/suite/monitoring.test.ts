/** Prometheus scrapes a running controller; what is shipped for it in monitoring/ works on what it finds. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { SystemClock } from '@tenon/runtime'
import { findPrometheus } from '../src/prometheus.ts'
import {
  aDeployment,
  Cluster,
  conditionOf,
  sharedControlPlane,
  type TestObject,
  until,
  untilInitialized,
} from './cluster.ts'
import { type Dashboard, dashboardQueries, metricNames } from './dashboard.ts'
import { freePort, PrometheusServer } from './prometheus-server.ts'
import { Controller, crdsYaml } from './tenon.ts'

const monitoring = new URL('../../monitoring/', import.meta.url)
const rules = new URL('prometheus/', monitoring)
const karpenter = 'karpenter.sh/v1'
const kwok = 'karpenter.kwok.sh/v1alpha1'
const clock = new SystemClock()

const programs = findPrometheus(process.env)
const skip =
  programs === undefined ? 'SKIPPED: no Prometheus; `npm run conformance` fetches it on Debian' : false
if (skip !== false) process.stderr.write(`monitoring.test.ts ${skip}\n`)

function aPool(name: string): TestObject {
  return {
    apiVersion: karpenter,
    kind: 'NodePool',
    metadata: { name },
    spec: {
      limits: { cpu: '200', memory: '800Gi' },
      disruption: { consolidationPolicy: 'WhenEmpty', consolidateAfter: '0s', budgets: [{ nodes: '2' }] },
      template: {
        spec: {
          expireAfter: 'Never',
          nodeClassRef: { group: 'karpenter.kwok.sh', kind: 'KWOKNodeClass', name: 'monitored' },
          requirements: [
            { key: 'kubernetes.io/os', operator: 'In', values: ['linux'] },
            { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
            { key: 'topology.kubernetes.io/zone', operator: 'In', values: ['test-zone-a'] },
          ],
        },
      },
    },
  }
}

describe('monitoring', { skip }, () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let cluster: Cluster
  let controller: Controller
  let server: PrometheusServer
  let metricsUrl: string
  let folder: string

  before(async () => {
    if (programs === undefined) return
    controlPlane = await sharedControlPlane()
    cluster = new Cluster(controlPlane.kubeconfigPath)
    folder = mkdtempSync(join(tmpdir(), 'tenon-monitoring-'))
    const port = await freePort()
    metricsUrl = `http://127.0.0.1:${port}/metrics`
    controller = new Controller(controlPlane.kubeconfigPath, join(folder, 'controller.log'), {
      METRICS_PORT: `${port}`,
    })
    server = await PrometheusServer.start(programs.prometheus, {
      folder,
      target: `127.0.0.1:${port}`,
      rules: ['recording-rules.yaml', 'alerts.yaml'].map((name) =>
        readFileSync(new URL(name, rules), 'utf8'),
      ),
    })
    applyCrds()
    await cluster.create({
      apiVersion: kwok,
      kind: 'KWOKNodeClass',
      metadata: { name: 'monitored' },
      spec: {},
    })
    await cluster.create(aPool('monitored'))
    controller.start()
    await aLittleOfEverything()
  })

  after(async () => {
    if (programs === undefined) return
    try {
      await cluster.delete('apps/v1', 'Deployment', 'monitored', 'default')
      for (const claim of await cluster.list(karpenter, 'NodeClaim'))
        await cluster.delete(karpenter, 'NodeClaim', claim.metadata?.name ?? '')
      await cluster.delete(karpenter, 'NodePool', 'monitored')
      await cluster.delete(kwok, 'KWOKNodeClass', 'monitored')
      await until('all nodes are gone', 60, async () => (await cluster.list('v1', 'Node')).length === 0)
    } finally {
      // A process that is left would keep this file from ending.
      await controller.end('SIGTERM')
      await server.stop()
      rmSync(folder, { recursive: true, force: true })
    }
    await controlPlane.stop()
  })

  function applyCrds(): void {
    const kubectl = (args: string[], input = '') =>
      execFileSync(
        join(controlPlane.binDir, 'kubectl'),
        ['--kubeconfig', controlPlane.kubeconfigPath, ...args],
        { input, stdio: ['pipe', 'ignore', 'inherit'] },
      )
    kubectl(['apply', '-f', '-'], crdsYaml())
    // Not all there are: those of other suites may be on their way out.
    kubectl(['wait', '--for=condition=Established', '-f', '-', '--timeout=20s'], crdsYaml())
  }

  /** Pods get nodes, one of which is drained and replaced. */
  async function aLittleOfEverything(): Promise<void> {
    await cluster.create(aDeployment({ name: 'monitored', replicas: 4, cpu: '3', memory: '2Gi' }))
    const allRun = async () => {
      controller.assertRunning()
      const pods = await cluster.list('v1', 'Pod', 'default', 'app=monitored')
      return pods.length === 4 && pods.every((pod) => conditionOf(pod, 'Ready') === 'True')
    }
    await until('all pods run', 100, allRun)
    const [drained] = await untilInitialized(cluster, 30)
    const name = drained?.metadata?.name ?? ''
    await cluster.delete(karpenter, 'NodeClaim', name)
    await until('the claim is gone', 60, async () => {
      return (await cluster.get(karpenter, 'NodeClaim', name)) === undefined
    })
    await until('its pods run elsewhere', 60, allRun)
  }

  async function scrape(): Promise<string> {
    controller.assertRunning()
    const response = await fetch(metricsUrl)
    assert.equal(response.status, 200)
    return await response.text()
  }

  /** Its exit code, and all it said. */
  async function promtool(args: readonly string[], input = ''): Promise<readonly [number | null, string]> {
    const child = spawn(programs?.promtool ?? '', args, { cwd: rules, stdio: ['pipe', 'pipe', 'pipe'] })
    const said: Buffer[] = []
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk: Buffer) => said.push(chunk))
    child.stdin.end(input)
    const code = await new Promise<number | null>((resolve) => child.once('close', resolve))
    return [code, Buffer.concat(said).toString('utf8')]
  }

  function familiesOf(text: string): ReadonlySet<string> {
    return new Set([...text.matchAll(/^# TYPE (\S+) /gm)].map(([, name = '']) => name))
  }

  test('promtool finds nothing wrong with a scrape, but for names that others chose', async () => {
    const text = await scrape()
    const [code, problems] = await promtool(['check', 'metrics'], text)
    // What it cannot read it ends with 1, what it would name otherwise with 3.
    assert.ok(code === 0 || code === 3, problems)
    const own = problems.split('\n').filter((line) => line !== '' && !isTaste(line))
    assert.deepEqual(own, [])
    for (const line of text.split('\n')) assert.doesNotMatch(line, /"[^",]*,[^"]*"[,}]/, 'a comma in a value')
  })

  test('Prometheus takes all samples of the controller and finds one leader', async () => {
    await until(
      'two scrapes',
      20,
      async () => Number((await server.query('count_over_time(up[1m])'))[0]?.value ?? 0) >= 2,
    )
    assert.deepEqual(
      (await server.query('up')).map(({ value }) => value),
      ['1'],
    )
    const [samples] = await server.query('scrape_samples_post_metric_relabeling')
    assert.ok(Number(samples?.value) > 500, `${samples?.value} samples`)
    assert.deepEqual(
      (await server.query('sum by (name) (leader_election_master_status)')).map(({ metric, value }) => [
        metric['name'],
        value,
      ]),
      [['karpenter-leader-election', '1']],
    )
  })

  test('the rules are sound, each alert is tested, and what they read is there', async () => {
    const files = readdirSync(rules)
    const checks = [
      ['check', 'rules', ...files.filter((name) => !name.includes('.test.'))],
      ['test', 'rules', ...files.filter((name) => name.includes('.test.'))],
    ]
    for (const args of checks) {
      const [code, said] = await promtool(args)
      assert.equal(code, 0, said)
    }
    for (const file of files.filter((name) => !name.includes('.test.') && name !== 'recording-rules.yaml'))
      everyAlertIsTested(file)
    const alerts = readFileSync(new URL('alerts.yaml', rules), 'utf8')
    const families = familiesOf(await scrape())
    const recording = readFileSync(new URL('recording-rules.yaml', rules), 'utf8')
    const recorded = new Set([...recording.matchAll(/record: (\S+)/g)].map(([, name = '']) => name))
    for (const name of metricNames(`${alerts}\n${recording}`))
      assert.ok(families.has(name) || recorded.has(name), `nobody writes ${name}`)
    const answers = await Promise.all(Array.from(recorded, (name) => hasData(name)))
    assert.deepEqual(
      answers.filter((problem) => problem !== ''),
      [],
    )
    const firing = await server.query('ALERTS{alertstate="firing"}')
    assert.deepEqual(
      firing.map(({ metric }) => metric['alertname']),
      [],
    )
  })

  function everyAlertIsTested(file: string): void {
    const tests = readFileSync(new URL(file.replace('.yaml', '.test.yaml'), rules), 'utf8')
    const alerts = readFileSync(new URL(file, rules), 'utf8').matchAll(/- alert: (\w+)/g)
    for (const [, name = ''] of alerts) {
      const cases = [
        ...tests.matchAll(new RegExp(`alertname: ${name}\\n\\s+(exp_alerts: \\[\\]|exp_alerts:)`, 'g')),
      ]
      assert.ok(
        cases.some(([, expected]) => expected === 'exp_alerts:'),
        `${name} is never seen to fire`,
      )
      assert.ok(
        cases.some(([, expected]) => expected === 'exp_alerts: []'),
        `${name} is never seen to be silent`,
      )
    }
  }

  test('every query of the dashboard answers something', async () => {
    const file = readFileSync(new URL('grafana/tenon.json', monitoring), 'utf8')
    const dashboard = JSON.parse(file) as Dashboard
    const families = familiesOf(await scrape())
    const queries = dashboardQueries(dashboard)
    assert.ok(queries.length > 50)
    for (const { title, expression } of queries) {
      for (const name of metricNames(expression))
        assert.ok(families.has(name), `${title}: nobody writes ${name}`)
    }
    const answers = queries.map(({ title, expression }) => hasData(expression, title))
    for (const variable of dashboard.templating.list) {
      const [, metric = '', label = ''] =
        /^label_values\((\w+), (\w+)\)$/.exec(variable.definition ?? '') ?? []
      if (variable.type === 'query') answers.push(hasData(`count by (${label}) (${metric}{${label}!=""})`))
    }
    assert.deepEqual(
      (await Promise.all(answers)).filter((problem) => problem !== ''),
      [],
    )
  })

  /** Empty when the expression has an answer, soon at the latest; else what is wrong. */
  async function hasData(expression: string, what = expression): Promise<string> {
    for (let attempts = 0; attempts < 8; attempts++) {
      if ((await server.query(expression)).length > 0) return ''
      await clock.sleep(1000)
    }
    return `no data for ${what}: ${expression}`
  }
})

/** Names and labels of Karpenter, controller-runtime and client-go that promtool would have otherwise. */
function isTaste(problem: string): boolean {
  return (
    /non-histogram and non-summary metrics should not have "_count" suffix/.test(problem) ||
    /non-counter metrics should not have "_total" suffix/.test(problem)
  )
}
