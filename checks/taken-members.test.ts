import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { takenIn } from './taken-members.ts'

const found = (text: string) => takenIn('packages/operator/src/any.ts', text)
const listing = (type: string) => `interface Dependencies { readonly state: ${type} }\n`
const picked = listing("Pick<ClusterState, 'plans' | 'pods'>")
const unused = (text: string) => found(text).flatMap((each) => each.unused)

describe('what files take of wide objects', () => {
  test('an object that is taken whole is found, one of which members are picked is not', () => {
    const of = (type: string) => found(`${listing(type)}const f = ({ state }: Dependencies) => g(state)`)[0]
    assert.deepEqual(of('ClusterState')?.whole, ['ClusterState'])
    assert.deepEqual(of('ClusterState | undefined')?.whole, ['ClusterState'])
    assert.deepEqual(of('PodPlans')?.whole, [])
    assert.deepEqual(of("Pick<ClusterState, 'plans'> & Pick<Caches, 'pods'>")?.members, ['plans', 'pods'])
    assert.deepEqual(of("Kubernetes<'nodes'>")?.members, ['nodes'])
    assert.deepEqual(of("Pick<Kubernetes<'nodes'>, 'events'>")?.members, ['events', 'nodes'])
  })

  test('a member that nobody reads is found', () => {
    assert.deepEqual(unused(`${picked}const f = ({ state }: Dependencies) => state.plans.get('a')`), ['pods'])
    assert.deepEqual(
      unused(`${picked}const f = ({ state: { plans, pods } }: Dependencies) => [plans, pods]`),
      [],
    )
  })

  test('a field that nobody reads is found', () => {
    assert.deepEqual(unused(`${picked}class Search { constructor(deps: Dependencies) {} }`), ['state'])
  })

  test('a field that is picked of other dependencies and that nobody reads is found', () => {
    const text = `type Dependencies = Pick<Many, 'one' | 'two'>
    const f = ({ one }: Dependencies) => one.run()`
    assert.deepEqual(unused(text), ['two'])
  })

  test('an interface that no code of its file uses is left to the files that do', () => {
    assert.deepEqual(unused(picked), [])
  })

  test('what is passed to functions of the same file has to be used there', () => {
    const text = `${picked}
    class Search { run() { return find(this.#deps) } }
    function find({ state }: Dependencies) { return state.plans }`
    assert.deepEqual(unused(text), ['pods'])
  })

  test('whoever else is given the object, or all of them, may use any member', () => {
    assert.deepEqual(unused(`${picked}const f = ({ state }: Dependencies) => find(state)`), [])
    assert.deepEqual(unused(`${picked}class Search { run() { return find(this.#deps) } }`), [])
    assert.deepEqual(unused(`${picked}class Search { run() { return new Other({ ...this.#deps }) } }`), [])
  })
})
