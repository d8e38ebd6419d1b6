import { defineConfig } from 'vite';

// The server that `npm run dev` and `npm run preview` speak to.
const server = process.env['ARGOSY_SERVER'] ?? 'http://127.0.0.1:8080';
const proxy = Object.fromEntries(
  ['/api', '/healthz', '/readyz', '/docs'].map((path) => [path, { target: server, changeOrigin: true }]),
);

export default defineConfig({
  base: '/ui/',
  // As the server sends it, so that what it would refuse is seen here first. `dev` injects styles, hence only here.
  preview: {
    proxy,
    headers: {
      'Content-Security-Policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  },
  server: { proxy },
  build: {
    target: 'es2022',
    // Small assets as `data:` addresses would break the content security policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: true,
  },
});
