/** The journeys in a real browser, against the real server: `npm run browser`. */
import { defineConfig } from '@playwright/test';

export default defineConfig({
  testDir: 'tests',
  testMatch: '*.journey.ts',
  outputDir: 'node_modules/.playwright',
  // One file is one server. Two of them at a time keep two cores busy, not choked: three take longer.
  workers: Number(process.env['BROWSER_WORKERS'] ?? 2),
  fullyParallel: false,
  // A flake is a fault of the page, the server or the test: none is tried again.
  retries: 0,
  forbidOnly: true,
  timeout: 300_000,
  // Deadlines, not durations: what is there at once is not waited for.
  expect: { timeout: 60_000 },
  reporter: [['list']],
  use: {
    browserName: 'chromium',
    viewport: { width: 1440, height: 900 },
    actionTimeout: 60_000,
    navigationTimeout: 60_000,
    trace: process.env['TRACE'] ? 'retain-on-failure' : 'off',
    launchOptions: {
      executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium',
      args: ['--no-sandbox', '--disable-dev-shm-usage'],
    },
  },
});
