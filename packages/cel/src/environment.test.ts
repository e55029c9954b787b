import assert from 'node:assert/strict'
import { test } from 'node:test'
import { compileCel, createEnvironment } from './index.ts'

const environment = createEnvironment({ self: 'dyn' })

function valueOf(expression: string, self: unknown): unknown {
  const { program, error } = compileCel(environment, expression)
  assert.ok(program !== undefined, error)
  return program({ self })
}

test('quantities are compared by amount, and versions by precedence', () => {
  assert.equal(valueOf("quantity(self).isGreaterThan(quantity('1Gi'))", '1025Mi'), true)
  assert.equal(valueOf("semver(self).isLessThan(semver('1.10.0'))", '1.9.0'), true)
})

test('an address is one of IP as the API server reads it', () => {
  assert.equal(valueOf('isIP(self)', '10.0.0.1'), true)
  assert.equal(valueOf('isIP(self)', '10.0.0.01'), false)
  assert.equal(valueOf('isIP(self)', '10.1'), false)
  assert.equal(valueOf('isIP(self)', 'fd00::1'), true)
  assert.equal(valueOf('isIP(self)', 'fe80::1%eth0'), false)
})

test('an expression that does not compile says why', () => {
  assert.match(compileCel(environment, 'self +').error ?? '', /./)
})
