import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  eventually,
  runTenon,
  startCluster,
  temporaryDirectory,
} from './testing/tenon-process.test-support.ts'

test('up --mode cluster-autoscaler shows node groups that grow for the demonstration', async (t) => {
  const cwd = await temporaryDirectory(t)
  const up = await startCluster(t, cwd, 'up', '--mode', 'cluster-autoscaler', '--boot-delay', '1s')
  await eventually(
    () => /pods 20 running 0 pending {3}nodes ([3-9])\/\1 ready/.test(up.out()) || undefined,
    () => `the groups grow: ${up.out()} ${up.err()}`,
  )
  assert.match(up.out(), /node groups +1:6:workers {2}1:4:batch/)
  assert.equal(up.err(), '')
  await up.end('SIGINT')
})

test('up --mode cluster-autoscaler scales MachineDeployments of the simulated Cluster API', async (t) => {
  const cwd = await temporaryDirectory(t)
  const flags = ['--mode', 'cluster-autoscaler', '--provider', 'cluster-api', '--boot-delay', '1s']
  const up = await startCluster(t, cwd, 'up', ...flags)
  await eventually(
    () => /pods 12 running 0 pending {3}nodes ([1-9])\/\1 ready/.test(up.out()) || undefined,
    () => `the groups grow: ${up.out()} ${up.err()}`,
  )
  assert.match(up.out(), /simulated Cluster API +in the cluster itself/)
  assert.equal(up.err(), '')
  await up.end('SIGINT')
})

test('up --mode cluster-autoscaler says which cloud has no node groups', async (t) => {
  const cwd = await temporaryDirectory(t)
  const { code, err } = await runTenon(t, cwd, [
    'up',
    '--mode',
    'cluster-autoscaler',
    '--provider',
    'clever-cloud',
  ])
  assert.equal(code, 1)
  assert.match(
    err,
    /^error: --mode=cluster-autoscaler: the simulator of Clever Cloud has no node groups; use exoscale or cluster-api/,
  )
})
