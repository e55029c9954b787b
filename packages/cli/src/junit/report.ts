/** JUnit XML for CI systems, valid against the schemas of both Jenkins and Maven Surefire. */

/** A test and its result. Texts may contain any characters. */
export interface JunitCase {
  readonly className: string
  readonly name: string
  readonly durationMs: number
  /** Absent if it passed. */
  readonly failure?: { readonly message: string; readonly type: string; readonly text: string }
  /** Its output, if any. */
  readonly output?: string
}

export function junitXml(suite: string, cases: readonly JunitCase[]): string {
  const failures = cases.filter(({ failure }) => failure !== undefined).length
  const total = cases.reduce((sum, { durationMs }) => sum + durationMs, 0)
  const figures = `tests="${cases.length}" failures="${failures}" errors="0"`
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    `<testsuites name="${attribute(suite)}" ${figures} time="${seconds(total)}">`,
    `  <testsuite name="${attribute(suite)}" ${figures} skipped="0" time="${seconds(total)}">`,
    ...cases.map(caseXml),
    '  </testsuite>',
    '</testsuites>',
    '',
  ].join('\n')
}

function caseXml({ className, name, durationMs, failure, output }: JunitCase): string {
  const head = `    <testcase classname="${attribute(className)}" name="${attribute(name)}" time="${seconds(durationMs)}"`
  const parts = [
    ...(failure === undefined
      ? []
      : [
          `      <failure message="${attribute(failure.message)}" type="${attribute(failure.type)}">${text(failure.text)}</failure>`,
        ]),
    ...(output === undefined ? [] : [`      <system-out>${text(output)}</system-out>`]),
  ]
  return parts.length === 0 ? `${head}/>` : [`${head}>`, ...parts, '    </testcase>'].join('\n')
}

function seconds(ms: number): string {
  return (Math.max(0, ms) / 1000).toFixed(3)
}

function text(value: string): string {
  return allowed(value).replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;')
}

/** Escapes newlines, which XML would turn into spaces. */
function attribute(value: string): string {
  return text(value)
    .replaceAll('"', '&quot;')
    .replaceAll('\n', '&#10;')
    .replaceAll('\r', '&#13;')
    .replaceAll('\t', '&#9;')
}

/** Removes characters that XML 1.0 cannot represent. */
function allowed(value: string): string {
  return value
    .toWellFormed()
    .replaceAll(/[^\t\n\r\u{20}-\u{d7ff}\u{e000}-\u{fffd}\u{10000}-\u{10ffff}]/gu, '\u{fffd}')
}
