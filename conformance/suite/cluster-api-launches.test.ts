/** The provider for Cluster API with its real controllers, in a cluster that is its own management cluster. */
import assert from 'node:assert/strict'
import { dirname } from 'node:path'
import { after, afterEach, before, describe, test } from 'node:test'
import { clusterApiAccount, readAuditLog } from '../src/audit.ts'
import { fleet } from '../src/cluster-api/hub.ts'
import { capiKinds, type MachineDeployment } from '../src/cluster-api/kinds.ts'
import { sharedControlPlane } from './cluster.ts'
import { ClusterApiStand, foreign, podCount, sizes } from './cluster-api-stand.ts'

describe('tenon controller --provider cluster-api', () => {
  let controlPlane: Awaited<ReturnType<typeof sharedControlPlane>>
  let stand: ClusterApiStand
  let startedAtMs: number
  let before40: readonly (MachineDeployment | undefined)[]

  const foreignOnes = () =>
    Promise.all(
      foreign.map((name) => stand.hub.client.get(capiKinds.machineDeployment, { namespace: fleet, name })),
    )

  before(async () => {
    controlPlane = await sharedControlPlane()
    stand = await ClusterApiStand.open({ controlPlane })
    startedAtMs = stand.hub.clock.now()
    before40 = await foreignOnes()
    stand.controller.start()
  })

  afterEach((context) => {
    if ('passed' in context && !context.passed) process.stderr.write(stand.endOfLog())
  })

  after(async () => {
    await stand.close()
    await controlPlane.stop()
  })

  test('40 pods run on Machines of three MachineDeployments, also when the controller is killed on the way', async () => {
    await stand.fill()
    await stand.until('the first Machines are there', async () => (await stand.machines()).length > 1)
    await stand.controller.end('SIGKILL')
    stand.controller.start()
    await stand.untilRunning(podCount)
    await stand.assertExact()
    for (const { name } of sizes)
      assert.ok((await stand.hub.machines(name)).length > 1, `Machines of ${name}`)
  })

  test('scaled to zero all of it goes, also when the controller is killed on the way', async () => {
    await stand.scalePods(0)
    await stand.until('the first Machine goes', async () =>
      (await stand.machines()).some(({ metadata }) => metadata.deletionTimestamp !== undefined),
    )
    await stand.controller.end('SIGKILL')
    stand.controller.start()
    await stand.untilEmpty()
    await stand.assertExact()
  })

  test('MachineDeployments that are no members, and their Machines, were not written to', async () => {
    const written = readAuditLog(dirname(controlPlane.kubeconfigPath)).filter(
      ({ user, verb, objectRef, requestReceivedTimestamp = '' }) =>
        user.username === clusterApiAccount &&
        Date.parse(requestReceivedTimestamp) >= startedAtMs &&
        objectRef?.apiGroup === 'cluster.x-k8s.io' &&
        !['get', 'list', 'watch'].includes(verb),
    )
    const names = written.map(({ objectRef }) => objectRef?.name ?? '')
    assert.ok(names.length > 0, 'the log has what Tenon wrote')
    assert.deepEqual(
      names.filter((name) => foreign.some((each) => name === each || name.startsWith(`${each}-`))),
      [],
    )
    const unchanging = (deployments: readonly (MachineDeployment | undefined)[]) =>
      deployments.map(
        (each) => each && { ...each.spec, ...each.metadata.annotations, ...each.metadata.labels },
      )
    assert.deepEqual(unchanging(await foreignOnes()), unchanging(before40))
  })
})
