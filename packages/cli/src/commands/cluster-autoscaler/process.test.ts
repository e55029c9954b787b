/** `tenon cluster-autoscaler` as a process against the embedded cluster and the simulated cloud. */
import assert from 'node:assert/strict'
import { test, type TestContext } from 'node:test'
import {
  controllerSettings,
  eventually,
  kubectlOut,
  startCluster,
  startTenon,
  temporaryDirectory,
  type TenonProcess,
} from '../../testing/tenon-process.test-support.ts'

async function started(t: TestContext, cwd: string, ...flags: readonly string[]) {
  const settings = await controllerSettings(cwd)
  const args = ['cluster-autoscaler', '--cloud-provider=exoscale', '--address=127.0.0.1:0', ...flags]
  const process = startTenon(t, cwd, args, settings)
  const port = await eventually(
    () => / port=(\d+) /.exec(process.err())?.[1],
    () => process.out() + process.err(),
  )
  const get = async (path: string) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`)
    return { status: response.status, text: await response.text() }
  }
  return { process, get }
}

async function status(cwd: string, process: TenonProcess): Promise<string> {
  return await eventually(
    async () => {
      const args = ['get', 'configmaps', '-n', 'kube-system', '-o', 'json']
      const { items } = JSON.parse(await kubectlOut(cwd, args)) as {
        readonly items: readonly {
          readonly metadata: { readonly name: string }
          readonly data?: { readonly status?: string }
        }[]
      }
      const text = items.find(({ metadata }) => metadata.name === 'cluster-autoscaler-status')?.data?.status
      return text?.includes('autoscalerStatus: Running') === true ? text : undefined
    },
    () => process.err(),
  )
}

test('CAS-38 CAS-105 CAS-110 a process serves, leads, tells its state, and ends with 0 on every signal that asks for it', async (t) => {
  const cwd = await temporaryDirectory(t)
  await startCluster(t, cwd, 'devcluster', '--provider', 'exoscale')
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGQUIT'] as const) {
    const isFirst = signal === 'SIGTERM'
    const { process, get } = await started(
      t,
      cwd,
      ...(isFirst ? ['--profiling', '--v=4'] : ['--scan-interval=1s', '--debugging-snapshot-enabled']),
    )
    assert.match(
      await status(cwd, process),
      /^autoscalerStatus: Running\nclusterWide:\n(?:.*\n)*time: .* UTC\n$/,
    )
    assert.deepEqual(await get('/health-check'), { status: 200, text: 'OK' })
    assert.match((await get('/metrics')).text, /^cluster_autoscaler_cluster_safe_to_autoscale 1$/m)
    assert.equal((await get('/debug/pprof/cmdline')).status, isFirst ? 200 : 404)
    if (isFirst) assert.equal((await get('/snapshotz')).status, 404)
    else {
      const { status: code, text } = await get('/snapshotz')
      assert.equal(code, 200, text)
      assert.ok('NodeList' in (JSON.parse(text) as object))
      assert.match((await get('/debug/explain?node=nobody')).text, /^node nobody, as of /)
    }
    assert.match(process.err(), /^I\d{4} [\d:.]{15} +1 cluster-autoscaler\] "starting" /m)
    assert.deepEqual(await process.end(signal), { code: 0, signal: null }, process.err())
    assert.equal(process.out(), '')
    const left = await kubectlOut(cwd, ['get', 'configmaps', '-n', 'kube-system', '-o', 'name'])
    assert.ok(!left.includes('cluster-autoscaler-status'), left)
  }
})
