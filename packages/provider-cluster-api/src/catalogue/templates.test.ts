import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResourceType } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import { MemoryKube } from '@tenon/provider/contract-suite'
import { silentLogger, VirtualClock } from '@tenon/runtime'
import { aDeployment } from '../testing/deployments.test-support.ts'
import type { MachineDeployment, TemplateRef } from '../objects.ts'
import { InfrastructureTemplates, preferredVersion } from './templates.ts'
import type { InfrastructureTemplate, TemplateFacts } from './template-facts.ts'

const group = 'infrastructure.cluster.x-k8s.io'
const definitions: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

class Shelf {
  readonly clock = new VirtualClock()
  readonly kube = new MemoryKube(this.clock)
  /** Of the next reads. */
  failure: Error | undefined
  hangs = false
  reads = 0
  readonly templates = new InfrastructureTemplates({
    hub: {
      kube: {
        get: async (type, key) => {
          this.reads++
          if (this.hangs) await new Promise(() => undefined)
          if (this.failure !== undefined) throw this.failure
          return await this.kube.get(type, key)
        },
      },
    },
    clock: this.clock,
    logger: silentLogger,
  })

  put(cpu: string, version = 'v1beta1'): void {
    const type: ResourceType<InfrastructureTemplate> = {
      group,
      version,
      kind: 'DevMachineTemplate',
      plural: 'devmachinetemplates',
      namespaced: true,
    }
    const metadata = { name: 'large', namespace: 'default' }
    const status = { capacity: { cpu, memory: '4Gi' } }
    this.kube.put(type, { apiVersion: `${group}/${version}`, kind: type.kind, metadata, status })
  }

  serve(...versions: readonly { readonly name: string; readonly served: boolean }[]): void {
    const metadata = { name: `devmachinetemplates.${group}` }
    const { kind } = definitions
    const definition = { apiVersion: 'apiextensions.k8s.io/v1', kind, metadata, spec: { versions } }
    this.kube.put(definitions, definition)
  }

  async facts(ref: TemplateRef = byVersion): Promise<TemplateFacts | undefined> {
    let isDone = false
    const asked = this.templates.factsOf(deploymentWith(ref)).finally(() => {
      isDone = true
    })
    await this.clock.advanceUntil(() => isDone, 60_000)
    return await asked
  }
}

const byVersion: TemplateRef = { apiVersion: `${group}/v1beta1`, kind: 'DevMachineTemplate', name: 'large' }
const byGroup: TemplateRef = { apiGroup: group, kind: 'DevMachineTemplate', name: 'large' }

function deploymentWith(infrastructureRef: TemplateRef): MachineDeployment {
  return aDeployment({ template: { spec: { infrastructureRef } } })
}

test('a template is read once, in the namespace of the MachineDeployment, and again after five minutes', async () => {
  const shelf = new Shelf()
  shelf.put('2')
  const first = await shelf.facts()
  assert.equal(first?.capacity['cpu'], 2000)
  assert.equal(await shelf.facts(), first)
  assert.equal(shelf.reads, 1)
  shelf.put('8')
  await shelf.clock.advance(5 * 60_000)
  assert.equal(await shelf.facts(), first, 'nobody waits for what is known already')
  await shelf.clock.advance(0)
  assert.equal((await shelf.facts())?.capacity['cpu'], 8000)
  assert.equal(shelf.reads, 2)
})

test('many MachineDeployments that ask at once wait for one read', async () => {
  const shelf = new Shelf()
  shelf.put('2')
  const asked = [1, 2, 3].map(() => shelf.templates.factsOf(deploymentWith(byVersion)))
  const [a, b, c] = await Promise.all(asked)
  assert.ok(a !== undefined && a === b && b === c)
  assert.equal(shelf.reads, 1)
})

test('a reference without a version is read in the one that Kubernetes prefers of those served', async () => {
  const shelf = new Shelf()
  shelf.serve(
    { name: 'v1beta1', served: true },
    { name: 'v1beta2', served: true },
    { name: 'v1', served: false },
  )
  shelf.put('2', 'v1beta2')
  assert.equal((await shelf.facts(byGroup))?.capacity['cpu'], 2000)
})

test('while the hub is away, what was read stands; what was not is told and tried again in a minute', async () => {
  const shelf = new Shelf()
  shelf.put('2')
  shelf.failure = new KubeError('transport', 0, 'connection refused')
  const unknown = await shelf.facts()
  assert.deepEqual(unknown, {
    capacity: {},
    problem:
      'its infrastructure template DevMachineTemplate default/large cannot be read: connection refused',
  })
  shelf.failure = undefined
  await shelf.clock.advance(60_000)
  await shelf.facts()
  const known = await shelf.facts()
  assert.equal(known?.capacity['cpu'], 2000)
  shelf.failure = new KubeError('transport', 0, 'connection refused')
  await shelf.clock.advance(5 * 60_000)
  await shelf.facts()
  await shelf.clock.advance(0)
  assert.equal(await shelf.facts(), known)
})

test('a hub that does not answer keeps nobody for longer than ten seconds', async () => {
  const shelf = new Shelf()
  shelf.hangs = true
  const before = shelf.clock.monotonic()
  assert.match((await shelf.facts())?.problem ?? '', /cannot be read: no response within 10 s/)
  assert.equal(shelf.clock.monotonic() - before, 10_000)
})

for (const [title, ref, problem] of [
  ['a template that does not exist', byVersion, /DevMachineTemplate default\/large does not exist/],
  ['a kind that is not served', byGroup, /serves no version of devmachinetemplates\.infrastructure/],
  ['a reference without a name', { ...byVersion, name: '' }, /infrastructureRef has no kind or no name/],
  ['a reference without a group', { kind: 'A', name: 'b' }, /infrastructureRef has no API group/],
] as const)
  test(`${title} tells nothing, and why`, async () => {
    const shelf = new Shelf()
    const facts = await shelf.facts(ref)
    assert.deepEqual(facts?.capacity, {})
    assert.match(facts.problem ?? '', problem)
    assert.equal(await shelf.facts(ref), facts)
  })

test('a right that is missing is named', async () => {
  const shelf = new Shelf()
  shelf.failure = new KubeError('forbidden', 403, 'forbidden')
  assert.match((await shelf.facts(byGroup))?.problem ?? '', /grant get on customresourcedefinitions/)
})

test('a MachineDeployment without a template has no facts', async () => {
  const shelf = new Shelf()
  assert.equal(await shelf.templates.factsOf(aDeployment()), undefined)
  assert.equal(shelf.reads, 0)
})

test('versions are preferred as Kubernetes does', () => {
  const inOrder = ['v10', 'v2', 'v1', 'v11beta2', 'v3beta1', 'v2beta10', 'v12alpha1', 'foo1']
  const left = [...inOrder]
  while (left.length > 0) {
    const next = preferredVersion(left.toReversed())
    assert.equal(next, left.shift())
  }
  assert.equal(preferredVersion([]), undefined)
})
