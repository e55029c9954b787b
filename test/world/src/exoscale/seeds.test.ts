/**
 * The public documents about Exoscale's provider, as a reader copies from them: manifests apply as they
 * stand, settings are read under the names they are given. The documents are read from beside the
 * repository where they are; elsewhere the check says that it was skipped.
 */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type KubeObject, kinds } from '@tenon/api'
import { readExoscaleOptions } from '@tenon/provider-exoscale'
import { World } from '../world.ts'
import { applyYaml } from '../testing/apply-yaml.test-support.ts'
import { documentAbout, documentsFolder, manifestsIn } from '../testing/public-documents.test-support.ts'
import { blogNodeClass, blogNodePool } from './blog-manifests.test-support.ts'
import { nodeClassKind } from './manifests.test-support.ts'

const readme = documentAbout(/^Karpenter Provider for Exoscale$/m)
const blog = documentAbout(/New Karpenter Integration/)
const skip = readme === '' || blog === '' ? `no public documents in ${documentsFolder}: not checked` : false

const templateId = '20000000-0000-4000-8000-000000000001'
const securityGroup = '8a4c2d1e-7f60-4b53-8e2d-9c0b1a2f3e4d'

async function aWorld(): Promise<World> {
  const world = await World.start({ seed: 2, provider: 'exoscale' })
  world.cluster.cloud.add({
    templates: [{ id: templateId, version: '1.34.0', variant: 'standard' }],
    securityGroups: [{ id: securityGroup, name: 'my-security-group' }],
    antiAffinityGroups: [{ name: 'my-anti-affinity-group' }],
    privateNetworks: [{ name: 'my-private-network' }],
  })
  return world
}

interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: readonly { readonly type: string; readonly status: string }[] }
}

function readiness(world: World): Readonly<Record<string, string | undefined>> {
  const classes = world.cluster.server.local.list(nodeClassKind) as readonly WithConditions[]
  return Object.fromEntries(
    classes.map(({ metadata, status }) => [
      metadata.name,
      status?.conditions?.find(({ type }) => type === 'Ready')?.status,
    ]),
  )
}

interface Event extends KubeObject {
  readonly reason?: string
  readonly message?: string
  readonly involvedObject?: { readonly name?: string }
}

describe('the public documents', { skip }, () => {
  test('every manifest of the README applies once it has an id, and its node class becomes ready', async () => {
    const world = await aWorld()
    const running = await world.startOperator()
    const manifests = manifestsIn(readme)
    assert.equal(manifests.length, 6)
    for (const manifest of manifests) {
      const { status, message } = await applyYaml(world, manifest.replace('<setme>', templateId))
      assert.equal(status, 201, `${message}\n${manifest}`)
    }
    await world.clock.advance(30_000)
    assert.deepEqual(readiness(world), {
      gpu: 'True',
      standard: 'True',
      'standard-auto': 'True',
      'standard-latest': 'True',
    })
    await world.bury(running)
    await world.stop()
  })

  test('fields of earlier releases are answered with the new form', async () => {
    const world = await aWorld()
    const running = await world.startOperator()
    for (const manifest of manifestsIn(readme))
      await applyYaml(world, manifest.replace('<setme>', templateId))
    await world.clock.advance(30_000)
    const events: readonly Event[] = world.cluster.server.local.list(kinds.event)
    const said = events
      .filter(({ reason, involvedObject }) => reason === 'DeprecatedField' && involvedObject?.name === 'gpu')
      .map(({ message }) => message)
      .join('\n')
    assert.match(said, /spec\.nodeLabels .*spec\.template\.metadata\.labels of the NodePool/)
    assert.match(said, /spec\.nodeTaints .*spec\.template\.spec\.taints of the NodePool/)
    await world.bury(running)
    await world.stop()
  })

  test('a placeholder that was not replaced is refused with the field that needs an id', async () => {
    const world = await aWorld()
    const [standard = ''] = manifestsIn(readme)
    const { status, message } = await applyYaml(world, standard)
    assert.equal(status, 422)
    assert.match(message, /spec\.templateID/)
    await world.stop()
  })

  test("the NodePool of Clever Cloud's provider applies as well: the kinds of the core are the same", async () => {
    const world = await aWorld()
    const [pool = '', ...others] = manifestsIn(documentAbout(/^Karpenter provider for Clever Cloud$/m))
    assert.deepEqual(await applyYaml(world, pool), { status: 201, message: '' })
    assert.deepEqual(
      others.map((manifest) => /^kind: (.*)$/m.exec(manifest)?.[1]),
      ['CleverNodeClass'],
      'the only other kind belongs to that provider',
    )
    await world.stop()
  })

  test('the settings of the README are read under their names', () => {
    const values: Readonly<Record<string, string>> = {
      EXOSCALE_SKS_CLUSTER_ID: 'f1b5a3c2-6d0e-4c57-9a8b-2f4e6d8c0a11',
      EXOSCALE_API_KEY: 'EXO1',
      EXOSCALE_API_SECRET: 'secret',
      EXOSCALE_ZONE: 'ch-gva-2',
      EXOSCALE_COMPUTE_INSTANCE_PREFIX: 'karpenter-',
      CLUSTER_DOMAIN: 'cluster.example',
      CLUSTER_ENDPOINT: 'https://sks.example:443',
      EXOSCALE_API_ENDPOINT: 'https://api-ch-gva-2.exoscale.com/v2',
      EXOSCALE_API_ENVIRONMENT: 'ppapi',
    }
    const named = [...readme.matchAll(/• ([A-Z_]{9,}):/g)].map(([, name = '']) => name)
    assert.deepEqual(named.filter((name) => name !== 'KUBECONFIG').toSorted(), Object.keys(values).toSorted())
    const read = readExoscaleOptions(values)
    assert.ok('ok' in read)
    const { apiSecret, ...options } = read.ok
    assert.equal(apiSecret.reveal(), 'secret')
    const given = new Set(Object.values(options))
    for (const [name, value] of Object.entries(values))
      if (name !== 'EXOSCALE_API_SECRET') assert.ok(given.has(value), `${name} is not read`)
  })

  test('the manifests of the journey are those of the announcement, line by line', () => {
    const lines = new Set(blog.split('\n').map((line) => line.trim()))
    for (const line of `${blogNodeClass}${blogNodePool}`.split('\n')) {
      // The page runs the last line of each manifest into the next sentence, and comments on one value.
      const text = line.trim()
      const isThere = lines.has(text) || [...lines].some((each) => each.startsWith(text))
      assert.ok(isThere, `the announcement does not say "${text}"`)
    }
  })
})
