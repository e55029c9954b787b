import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { VirtualClock } from '@tenon/runtime'
import { TemplateResolver } from './template.ts'

const spec = { imageTemplateSelector: {} }

describe('the template of a class for many instances', () => {
  test('is asked for, with the version of the control plane, once a minute', async () => {
    const clock = new VirtualClock()
    const asked: string[] = []
    let gitVersion = 'v1.34.1'
    const resolver = new TemplateResolver({
      clock,
      kube: {
        serverVersion: () => {
          asked.push('version')
          return Promise.resolve(gitVersion)
        },
      },
      api: {
        getActiveNodepoolTemplate: (version) => {
          asked.push(version)
          return Promise.resolve(`template of ${version}`)
        },
      },
    })
    for (let instance = 0; instance < 5; instance++)
      assert.equal(await resolver.resolveRecent(spec), 'template of 1.34.1')
    assert.deepEqual(asked, ['version', '1.34.1'])
    gitVersion = 'v1.35.0'
    assert.equal(await resolver.resolve(spec), 'template of 1.35.0')
    await clock.advance(61_000)
    gitVersion = 'v1.36.0'
    assert.equal(await resolver.resolveRecent(spec), 'template of 1.36.0')
  })
})
