/**
 * Runs the test files that are its arguments in this process. Node's runner would track every promise and timer
 * to attribute uncaught errors to tests, which takes a third of the time of a simulated cluster. Without it,
 * such an error fails the process instead of one test. Hooks at the top level of a file do not run for its
 * suites.
 */
import asyncHooks from 'node:async_hooks'
import { resolve } from 'node:path'
import { pathToFileURL } from 'node:url'

const { createHook } = asyncHooks
const noHook = { enable: () => noHook, disable: () => noHook }
Object.assign(asyncHooks, { createHook: () => noHook })
const { before, test } = await import('node:test')
Object.assign(asyncHooks, { createHook })

// The runner only reports its message.
for (const event of ['uncaughtException', 'unhandledRejection'])
  process.on(event, (error: unknown) => {
    console.error(error)
  })

const loaded = Promise.withResolvers<void>()
// Loading it on demand would add to the time of tests that measure it.
before(() => loaded.promise)
for (const file of process.argv.slice(2)) {
  try {
    await import(pathToFileURL(resolve(file)).href)
  } catch (error) {
    test(`${file} can be loaded`, () => {
      throw error
    })
  }
}
loaded.resolve()
